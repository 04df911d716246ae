#include <fmt/format.h>

#include <algorithm>

#include "analysis/measures/attention_lost.h"
#include "analysis/measures/heads_keeping_token.h"
#include "analysis/ranking.h"
#include "analysis/runs/run_style.h"
#include "analysis/runs/sentences.h"

namespace kvscope::analysis {
namespace {

SubjectTable table_of(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& runs) {
    std::vector<std::variant<SubjectKey, Column>> columns = {
        Column{"first_token", "First token", "", ColumnType::integer},
        Column{"last_token", "Last token", "", ColumnType::integer}, Column{"text", "Sentence", "", ColumnType::text}};
    const auto add = [&](const char* name, const char* title, const char* unit, int decimals) {
        for (const int run : runs)
            columns.emplace_back(Column{fmt::format("{}_run_{}", name, run),
                                        fmt::format("{}, {}", title, run_label(reader.run(options.prompt, run))), unit,
                                        ColumnType::real, decimals});
    };
    add("kept", "Kept", "", 3);
    add("lost", "Lost", "", 5);
    add("kl_lost", "Lost × KL", "nats", 4);
    return {"marks",
            fmt::format("Occurrences of “{}” in the prompt, ranked by the share of their entries that the runs keep",
                        options.own_text("mark", "")),
            std::move(columns)};
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    const std::string mark = options.own_text("mark", "");
    if (mark.empty()) throw FigureError("--mark is missing: it sets the text to search for");
    const std::vector<int> runs = chosen_runs(reader, options);
    const auto n = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const TokenTexts texts = join_tokens_into_text(reader.token_text(options.prompt));
    auto places = find_text(texts, mark);
    std::erase_if(places, [&](const auto& place) { return place.second >= static_cast<int64_t>(n); });
    if (places.empty())
        throw NothingToShow(fmt::format("{}: the part of prompt {} that policies see does not contain “{}”",
                                        reader.path().string(), options.prompt, mark));
    const std::vector<int> layers = chosen_layers(reader, options);
    std::vector<std::vector<double>> kept_by;  // kept share of each token, (runs, N)
    for (const int run : runs) kept_by.push_back(share_of_heads_keeping(reader, options.prompt, run, layers));
    const TokenLosses losses = attention_lost_by_runs(reader, options.prompt, runs, layers);
    const std::vector<TokenSpan> sentences = sentences_of(texts, n);
    RankingRows rows(table_of(reader, options, runs));
    for (const auto& place : places) {
        const auto is_before = [&](const TokenSpan& span) { return span.last < static_cast<size_t>(place.first); };
        const auto sentence = std::partition_point(sentences.begin(), sentences.end(), is_before);
        std::vector<Cell> cells = {place.first, place.second, trimmed_text(texts, *sentence)};
        double kept = 0;
        for (const auto& of_run : kept_by) {
            const double share = sum_over_tokens(of_run, {place.first, place.second}) /
                                 static_cast<double>(place.second - place.first + 1);
            kept += share / static_cast<double>(runs.size());
            cells.emplace_back(share);
        }
        for (const auto measure : {&TokenLosses::OfRun::attention, &TokenLosses::OfRun::kl_attention})
            for (const auto& of_run : losses.runs)
                cells.push_back(of_run.is_measured
                                    ? known_cell(sum_over_tokens(of_run.*measure, {place.first, place.second}))
                                    : Cell());
        rows.add({{.token = static_cast<int>(place.first)}, static_cast<int>(place.second)}, -kept, std::move(cells));
    }
    return rows.take();
}

}  // namespace

FigureDefinition marks_figure() {
    return define_ranking<make, chosen_runs>(
        "marks", "Occurrences of a text",
        "Occurrences of a text in the prompt, ranked by the share of their entries that the runs keep, with the "
        "attention that each run lost",
        {{"mark", "the text to search for; upper and lower case match each other", {}, {}, "text"},
         {"runs", "runs, by label, policy or number; default: all except full"},
         {"layers", "default: all"}});
}

}  // namespace kvscope::analysis
