#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/measures/attention_lost.h"
#include "analysis/measures/retention.h"
#include "analysis/ranking_definition.h"
#include "analysis/run_style.h"
#include "analysis/sentences.h"

namespace kvscope::analysis::marks_file {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Of one run, for each token (N).
struct OfRun {
    std::vector<double> kept;  ///< share of the layers' rows that keep it
    std::vector<double> lost;  ///< of the full cache's attention, what falls on it and is lost; empty: not known
};

std::vector<OfRun> read_runs(const trace::Reader& reader, int prompt, const std::vector<int>& runs,
                             const std::vector<int>& layers) {
    const auto n = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    std::vector<std::shared_ptr<const trace::Kept>> kept;
    std::vector<OfRun> of;
    for (const int run : runs) {
        kept.push_back(reader.kept(prompt, run));
        of.push_back({kept_shares(kept_sets(*kept.back(), n), layers), {}});
    }
    if (!reader.has(trace::Place::of_prompt(prompt), trace::schema::prompt::window_attention)) return of;
    const auto n_heads = static_cast<size_t>(reader.model().n_heads);
    for (size_t i = 0; i < of.size(); ++i)
        if (is_measured_by_tokens(reader.run(prompt, runs[i]), kept_sets(*kept[i], n))) of[i].lost.assign(n, 0.0);
    for (const int layer : layers) {
        const auto attention = reader.window_attention(prompt, static_cast<size_t>(layer));
        for (size_t i = 0; i < of.size(); ++i) {
            if (of[i].lost.empty()) continue;
            const auto lost = attention_lost(attention, n_heads, kept_sets(*kept[i], n), static_cast<size_t>(layer));
            for (size_t token = 0; token < n; ++token)
                of[i].lost[token] += lost[token] / static_cast<double>(layers.size());
        }
    }
    return of;
}

double sum_of(const std::vector<double>& values, std::pair<int64_t, int64_t> place) {
    return std::accumulate(values.begin() + place.first, values.begin() + place.second + 1, 0.0);
}

SubjectTable table_of(const trace::Reader& reader, const RankingOptions& options, const std::vector<int>& runs) {
    std::vector<std::variant<SubjectKey, Column>> columns = {
        Column{"first_token", "First token", "", ColumnType::integer},
        Column{"last_token", "Last token", "", ColumnType::integer}, Column{"text", "Sentence", "", ColumnType::text}};
    for (const int run : runs)
        columns.emplace_back(Column{fmt::format("kept_run_{}", run),
                                    "Kept, " + run_label(reader.run(options.prompt, run)), "", ColumnType::real, 3});
    for (const int run : runs)
        columns.emplace_back(Column{fmt::format("lost_run_{}", run),
                                    "Lost, " + run_label(reader.run(options.prompt, run)), "", ColumnType::real, 4});
    return {"marks", fmt::format("Where the prompt says “{}”, by the share that runs keep of it", options.mark),
            std::move(columns)};
}

Ranking make(const trace::Reader& reader, const RankingOptions& options) {
    check_prompt(reader, options.prompt);
    if (options.mark.empty()) throw FigureError("--mark is missing: the text whose places are ranked");
    const std::vector<int> runs = chosen_runs(reader, options.choice());
    const auto n = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const TokenTexts texts = token_texts(reader.token_text(options.prompt));
    auto places = find_text(texts, options.mark);
    std::erase_if(places, [&](const auto& place) { return place.second >= static_cast<int64_t>(n); });
    if (places.empty())
        throw NothingToShow(fmt::format("{}: what policies see of prompt {} does not say “{}”", reader.path().string(),
                                        options.prompt, options.mark));
    const std::vector<OfRun> of = read_runs(reader, options.prompt, runs, chosen_layers(reader, options.choice()));
    const std::vector<TokenSpan> sentences = sentences_of(texts, n);
    RankingRows rows(table_of(reader, options, runs));
    for (const auto& place : places) {
        const auto is_before = [&](const TokenSpan& span) { return span.last < static_cast<size_t>(place.first); };
        const auto sentence = std::partition_point(sentences.begin(), sentences.end(), is_before);
        std::vector<Cell> cells = {place.first, place.second, trimmed_text(texts, *sentence)};
        double kept = 0;
        for (const OfRun& run : of) {
            const double share = sum_of(run.kept, place) / static_cast<double>(place.second - place.first + 1);
            kept += share / static_cast<double>(of.size());
            cells.emplace_back(share);
        }
        for (const OfRun& run : of) cells.push_back(known_cell(run.lost.empty() ? unknown : sum_of(run.lost, place)));
        rows.add({{.token = static_cast<int>(place.first)}, static_cast<int>(place.second)}, -kept, std::move(cells));
    }
    return rows.take();
}

}  // namespace
}  // namespace kvscope::analysis::marks_file

namespace kvscope::analysis {

RankingDefinition marks_ranking() {
    return {
        "marks",
        "Places of the mark",
        "Where the prompt says a text, by the share that runs keep of it, least first; beside it the attention that "
        "each lost there",
        RankedRuns::any,
        {{"mark", "the text, as it stands in the prompt; upper and lower case are alike"},
         {"runs", "labels, policies or numbers of runs; default: all but full"},
         {"layers", "default: all"}},
        marks_file::make};
}

}  // namespace kvscope::analysis
