#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/measures/heads_keeping_token.h"
#include "analysis/ranking.h"
#include "analysis/runs/run_style.h"
#include "analysis/runs/token_texts.h"

namespace kvscope::analysis {
namespace {

/// Returns the population standard deviation. Summing sorted differences makes equal spreads compare as exactly equal.
double standard_deviation(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    double squares = 0;
    for (size_t i = 0; i < values.size(); ++i)
        for (size_t j = 0; j < i; ++j) squares += (values[i] - values[j]) * (values[i] - values[j]);
    return std::sqrt(squares) / static_cast<double>(values.size());
}

SubjectTable table_of(const trace::Reader& reader, int prompt, const std::vector<int>& runs) {
    std::vector<std::variant<SubjectKey, Column>> columns = {
        SubjectKey::token, Column{"token_text", "Text", "", ColumnType::text},
        Column{"disagreement", "Disagreement", "", ColumnType::real, 3},
        Column{"range", "Range", "", ColumnType::real, 3},
        Column{"runs_keeping", "Runs keeping", "", ColumnType::integer}};
    for (const int run : runs)
        columns.emplace_back(Column{fmt::format("kept_run_{}", run), "Kept, " + run_label(reader.run(prompt, run)), "",
                                    ColumnType::real, 3});
    return {"tokens",
            fmt::format("Tokens ranked by the disagreement of {} runs: the standard deviation of the share of heads "
                        "that keep a token",
                        runs.size()),
            std::move(columns)};
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<int> runs = chosen_runs(reader, options);
    if (runs.size() < 2)
        throw NothingToShow(fmt::format("{}: the ranking tokens needs at least two runs; prompt {} has {}",
                                        reader.path().string(), options.prompt, runs.size()));
    const std::vector<int> layers = chosen_layers(reader, options);
    const auto n = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    std::vector<std::vector<double>> kept;  // kept share of each token, (runs, N)
    for (const int run : runs) kept.push_back(share_of_heads_keeping(reader, options.prompt, run, layers));
    const TokenTexts texts = join_tokens_into_text(reader.token_text(options.prompt));
    RankingRows rows(table_of(reader, options.prompt, runs));
    for (size_t token = 0; token < n; ++token) {
        std::vector<double> of_runs;
        for (const auto& shares : kept) of_runs.push_back(shares[token]);
        const auto [least, most] = std::minmax_element(of_runs.begin(), of_runs.end());
        const double disagreement = standard_deviation(of_runs);
        const auto n_keeping = std::count_if(of_runs.begin(), of_runs.end(), [](double share) { return share > 0; });
        std::vector<Cell> cells = {std::string(whole_characters_of_tokens(texts, token, token)), disagreement,
                                   *most - *least, static_cast<int64_t>(n_keeping)};
        cells.insert(cells.end(), of_runs.begin(), of_runs.end());
        rows.add({{.token = static_cast<int>(token)}, static_cast<int>(token)}, disagreement, std::move(cells));
    }
    return rows.take();
}

}  // namespace

FigureDefinition tokens_figure() {
    return define_ranking<make, chosen_runs>(
        "tokens", "Tokens that runs disagree about",
        "Tokens ranked by the disagreement of the runs: the standard deviation of the share of heads that keep a token",
        {{"runs", "runs, by label, policy or number, two or more; default: all except full"},
         {"layers", "default: all"}});
}

}  // namespace kvscope::analysis
