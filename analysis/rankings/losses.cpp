#include <limits>
#include <memory>

#include "analysis/measures/attention_kept.h"
#include "analysis/ranking.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

KeptSets layer_of(const KeptSets& kept, size_t layer) {
    KeptSets one = kept;
    one.n_layers = 1;
    one.offsets = kept.offsets.subspan(layer * kept.n_rows, kept.n_rows + 1);
    return one;
}

std::vector<double> group_means(const std::vector<float>& values, size_t n_groups) {
    const size_t n = values.size() / n_groups;
    std::vector<double> means(n_groups, 0.0);
    for (size_t i = 0; i < values.size(); ++i) means[i / n] += static_cast<double>(values[i]) / static_cast<double>(n);
    return means;
}

double entries_of_head(const KeptSets& entries, size_t layer, size_t head, size_t n_kv_heads) {
    const size_t group = entries.n_rows / n_kv_heads;
    double n = 0;
    for (size_t row = head * group; row < (head + 1) * group; ++row)
        n += static_cast<double>(entries.count(layer, row));
    return n / static_cast<double>(group);
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    require_window_attention(reader, options.prompt);
    const std::vector<int> runs = chosen_runs(reader, options);
    const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const auto n_heads = static_cast<size_t>(reader.model().n_heads);
    const auto n_kv_heads = static_cast<size_t>(reader.model().n_kv_heads);
    RankingRows rows(SubjectTable(
        "losses",
        "KV heads ranked by attention lost: the share of the full run's attention that went to dropped tokens",
        {SubjectKey::run, label_column(), SubjectKey::layer, SubjectKey::head,
         Column{"attention_lost", "Attention lost", "", ColumnType::real, 4},
         Column{"entries_share", "Entries kept", "", ColumnType::real, 3}}));
    std::vector<std::shared_ptr<const trace::Kept>> kept_by;
    for (const int run : runs) kept_by.push_back(reader.kept(options.prompt, run));
    for (const int layer : chosen_layers(reader, options)) {
        const auto l = static_cast<size_t>(layer);
        const auto attention = reader.window_attention(options.prompt, l);
        for (size_t i = 0; i < runs.size(); ++i) {
            const int run = runs[i];
            const trace::Kept& kept = *kept_by[i];
            const KeptSets sets = kept_sets(kept, n_tokens);
            const bool is_measured = can_measure_kept_tokens(reader.run(options.prompt, run), sets);
            const auto shares = group_means(attention_kept(attention, n_heads, layer_of(sets, l)), n_kv_heads);
            const std::string label = run_label(reader.run(options.prompt, run));
            for (size_t head = 0; head < n_kv_heads; ++head) {
                const double lost = is_measured ? 1 - shares[head] : unknown;
                const double entries = entries_of_head(entry_sets(kept, n_tokens), l, head, n_kv_heads);
                rows.add({{.run = run, .layer = layer, .head = static_cast<int>(head)}}, lost,
                         {label, is_measured ? Cell(lost) : Cell(), entries / static_cast<double>(n_tokens)});
            }
        }
    }
    return rows.take();
}

}  // namespace

FigureDefinition losses_figure() {
    return define_ranking<make, chosen_runs>(
        "losses", "Heads that lost the most attention",
        "KV heads ranked by attention lost: the share of the full run's attention that went to dropped tokens",
        {{"runs", "runs, by label, policy or number; default: all except full"}, {"layers", "default: all"}});
}

}  // namespace kvscope::analysis
