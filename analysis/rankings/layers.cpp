#include <fmt/format.h>

#include <memory>
#include <numeric>

#include "analysis/head_divergence.h"
#include "analysis/measures/attention_lost.h"
#include "analysis/measures/mean_of_known.h"
#include "analysis/measures/token_coverage.h"
#include "analysis/ranking.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

struct Run {
    std::shared_ptr<const trace::Kept> kept;
    std::vector<Coverage> coverage;  ///< one per layer
    bool is_measured = false;        ///< result of can_measure_kept_tokens()
};

SubjectTable table_of(const trace::Reader& reader, int prompt, const std::vector<int>& runs) {
    std::vector<std::variant<SubjectKey, Column>> columns = {
        SubjectKey::layer, Column{"divergence", "Heads differ", "nats", ColumnType::real, 4}};
    for (const int run : runs) {
        const std::string label = run_label(reader.run(prompt, run));
        columns.emplace_back(
            Column{fmt::format("attention_lost_run_{}", run), "Lost, " + label, "", ColumnType::real, 3});
        columns.emplace_back(
            Column{fmt::format("coverage_run_{}", run), "Coverage, " + label, "", ColumnType::real, 3});
    }
    return {"layers",
            "Layers ranked by the mean Jensen-Shannon divergence between their KV heads, with the coverage and the "
            "attention lost of each run",
            std::move(columns)};
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    require_head_divergence(reader, options.prompt);
    const std::vector<int> runs = chosen_runs(reader, options);
    const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const auto n_heads = static_cast<size_t>(reader.model().n_heads);
    std::vector<Run> read;
    for (const int run : runs) {
        const auto kept = reader.kept(options.prompt, run);
        const KeptSets sets = kept_sets(*kept, n_tokens);
        read.push_back({kept, layer_coverage(sets), can_measure_kept_tokens(reader.run(options.prompt, run), sets)});
    }
    RankingRows rows(table_of(reader, options.prompt, runs));
    for (const int layer : chosen_layers(reader, options)) {
        const auto l = static_cast<size_t>(layer);
        const double divergence = mean_of_known(mean_head_divergences_of_layer(reader, options.prompt, l));
        const auto attention = reader.window_attention(options.prompt, l);
        std::vector<Cell> cells = {divergence};
        for (const Run& run : read) {
            cells.emplace_back();
            if (run.is_measured) {
                const auto lost = attention_lost(attention, n_heads, kept_sets(*run.kept, n_tokens), l);
                cells.back() = std::accumulate(lost.begin(), lost.end(), 0.0);
            }
            cells.emplace_back(run.coverage[l].share);
        }
        rows.add({{.layer = layer}}, divergence, std::move(cells));
    }
    return rows.take();
}

}  // namespace

FigureDefinition layers_figure() {
    return define_ranking<make, chosen_runs>(
        "layers", "Layers whose heads differ most",
        "Layers ranked by the mean Jensen-Shannon divergence between their KV heads, with the coverage and the "
        "attention lost of each run",
        {{"runs", "runs, by label, policy or number; default: all except full"}, {"layers", "default: all"}});
}

}  // namespace kvscope::analysis
