#include <fmt/format.h>

#include <algorithm>

#include "analysis/measures/attention_lost.h"
#include "analysis/measures/kept_sets.h"
#include "analysis/ranking.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_style.h"
#include "analysis/runs/sentences.h"

namespace kvscope::analysis {
namespace {

SubjectTable table_of(const trace::Reader& reader, int prompt, const std::vector<int>& runs) {
    std::vector<std::variant<SubjectKey, Column>> columns = {
        Column{"first_token", "First token", "", ColumnType::integer},
        Column{"last_token", "Last token", "", ColumnType::integer}, Column{"text", "Text", "", ColumnType::text},
        Column{"kl_lost_mean", "Mean", "nats", ColumnType::real, 4}};
    for (const int run : runs)
        columns.emplace_back(Column{fmt::format("kl_lost_run_{}", run), run_label(reader.run(prompt, run)), "nats",
                                    ColumnType::real, 4});
    return {"kl-losses",
            "Sentences ranked by the full run's attention to dropped tokens, weighted by the KL(full ‖ run) of each "
            "decode step and averaged over the runs",
            std::move(columns)};
}

struct Measured {
    std::vector<int> runs;
    std::vector<std::vector<double>> lost;
};

/// @throws NothingToShow if no chosen run records losses
Measured measured(const trace::Reader& reader, const FigureOptions& options) {
    const auto n = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const std::vector<int> layers = chosen_layers(reader, options);
    Measured of;
    for (const int run : chosen_runs(reader, options)) {
        const auto kept = reader.kept(options.prompt, run);
        if (!can_measure_kept_tokens(reader.run(options.prompt, run), kept_sets(*kept, n))) continue;
        auto lost = kl_weighted_attention_lost(reader, options.prompt, run, layers);
        if (lost.empty()) continue;
        of.runs.push_back(run);
        of.lost.push_back(std::move(lost));
    }
    if (of.runs.empty()) {
        const std::string why = why_data_is_missing(reader, trace::schema::run::kl_attention_lost);
        throw NothingToShow(fmt::format("{}: no chosen run of prompt {} has kl_attention_lost{}",
                                        reader.path().string(), options.prompt,
                                        why.empty() ? ". It is recorded for runs that drop tokens only before they "
                                                      "decode, unless --no-record or --no-compare is set; traces of "
                                                      "older kvscope versions lack it"
                                                    : why));
    }
    return of;
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    const Measured of = measured(reader, options);
    const TokenTexts texts = join_tokens_into_text(reader.token_text(options.prompt));
    RankingRows rows(table_of(reader, options.prompt, of.runs));
    for (const TokenSpan span :
         split_into_sentences_to_rank(texts, of.lost[0].size(), !reader.prompt(options.prompt).chat_template.empty())) {
        std::vector<Cell> cells = {static_cast<int64_t>(span.first), static_cast<int64_t>(span.last),
                                   trimmed_text(texts, span)};
        std::vector<Cell> of_runs;
        double mean = 0;
        for (const auto& lost : of.lost) {
            const double sum = sum_over_tokens(lost, token_range_of_span(span));
            mean += sum / static_cast<double>(of.runs.size());
            of_runs.push_back(known_cell(sum));
        }
        cells.push_back(known_cell(mean));
        cells.insert(cells.end(), of_runs.begin(), of_runs.end());
        rows.add({{.token = static_cast<int>(span.first)}, static_cast<int>(span.last)}, mean, std::move(cells));
    }
    return rows.take();
}

}  // namespace

FigureDefinition kl_losses_figure() {
    return define_ranking<make, chosen_runs>(
        "kl-losses", "Sentences with the most lost attention, weighted by KL",
        "Sentences of the prompt, ranked by the full run's attention to dropped tokens. The attention at each "
        "decode step is weighted by the run's KL",
        {{"runs", "runs, by label, policy or number; default: all except full"}, {"layers", "default: all"}});
}

}  // namespace kvscope::analysis
