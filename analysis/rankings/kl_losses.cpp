#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analysis/measures/attention_lost.h"
#include "analysis/ranking_definition.h"
#include "analysis/run_style.h"
#include "analysis/sentences.h"

namespace kvscope::analysis::kl_losses_file {
namespace {

SubjectTable table_of(const trace::Reader& reader, int prompt, const std::vector<int>& runs) {
    std::vector<std::variant<SubjectKey, Column>> columns = {
        Column{"first_token", "First token", "", ColumnType::integer},
        Column{"last_token", "Last token", "", ColumnType::integer}, Column{"text", "Text", "", ColumnType::text}};
    for (const int run : runs)
        columns.emplace_back(Column{fmt::format("kl_lost_run_{}", run), run_label(reader.run(prompt, run)), "nats",
                                    ColumnType::real, 4});
    return {"kl-losses",
            "Sentences by the full cache's attention that runs lost there, each decode step weighted by its KL(full ‖ "
            "run): the mean over the runs",
            std::move(columns)};
}

/// Those that drop tokens and whose loss is recorded. @throws NothingToShow where there are none
std::vector<int> measured_runs(const trace::Reader& reader, int prompt, const std::vector<int>& runs,
                               TokenLosses& losses) {
    std::vector<int> measured;
    std::vector<TokenLosses::OfRun> of;
    for (size_t i = 0; i < runs.size(); ++i) {
        if (!losses.runs[i].is_measured || losses.runs[i].kl_attention.empty()) continue;
        measured.push_back(runs[i]);
        of.push_back(std::move(losses.runs[i]));
    }
    if (measured.empty())
        throw NothingToShow(fmt::format(
            "{}: of prompt {} no chosen run says what it lost where it differs from the full cache "
            "(kl_attention_lost): that is recorded of runs which drop tokens, with the measures of the full cache and "
            "the comparison with it, since it is in the format; make the trace again",
            reader.path().string(), prompt));
    losses.runs = std::move(of);
    return measured;
}

Ranking make(const trace::Reader& reader, const RankingOptions& options) {
    check_prompt(reader, options.prompt);
    const std::vector<int> chosen = chosen_runs(reader, options.choice());
    TokenLosses losses = token_losses(reader, options.prompt, chosen, chosen_layers(reader, options.choice()));
    const std::vector<int> runs = measured_runs(reader, options.prompt, chosen, losses);
    const TokenTexts texts = token_texts(reader.token_text(options.prompt));
    RankingRows rows(table_of(reader, options.prompt, runs));
    for (const TokenSpan span : sentences_of(texts, losses.runs[0].kl_attention.size())) {
        std::vector<Cell> cells = {static_cast<int64_t>(span.first), static_cast<int64_t>(span.last),
                                   trimmed_text(texts, span)};
        double mean = 0;
        for (const auto& of_run : losses.runs) {
            const auto begin = of_run.kl_attention.begin();
            const double lost = std::accumulate(begin + static_cast<std::ptrdiff_t>(span.first),
                                                begin + static_cast<std::ptrdiff_t>(span.last) + 1, 0.0);
            mean += lost / static_cast<double>(runs.size());
            cells.emplace_back(lost);
        }
        rows.add({{.token = static_cast<int>(span.first)}, static_cast<int>(span.last)}, mean, std::move(cells));
    }
    return rows.take();
}

}  // namespace
}  // namespace kvscope::analysis::kl_losses_file

namespace kvscope::analysis {

RankingDefinition kl_losses_ranking() {
    return {"kl-losses",
            "Sentences by KL-weighted attention lost",
            "The prompt's sentences by the full cache's attention that each run lost there, each decode step weighted "
            "by how far the run is from the full cache",
            RankedRuns::any,
            {{"runs", "labels, policies or numbers of runs; default: all but full"}, {"layers", "default: all"}},
            kl_losses_file::make};
}

}  // namespace kvscope::analysis
