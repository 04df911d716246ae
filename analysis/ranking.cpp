#include "analysis/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/runs/missing_data.h"
#include "analysis/runs/token_texts.h"
#include "trace/records/schema.h"

namespace kvscope::analysis {

Ranking make_ranking(const FigureDefinition& definition, const trace::Reader& reader, const FigureOptions& options) {
    check_options(definition, options);
    return definition.rank(reader, options);
}

double sum_over_tokens(const std::vector<double>& values, TokenRange range) {
    if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
    return std::accumulate(values.begin() + range.first, values.begin() + range.last + 1, 0.0);
}

void require_window_attention(const trace::Reader& reader, int prompt) {
    const auto& data_set = trace::schema::prompt::window_attention;
    if (reader.has_model() && reader.has(trace::Place::of_prompt(prompt), data_set)) return;
    const std::string why = why_data_is_missing(reader, data_set);
    throw NothingToShow(fmt::format("{}: prompt {} has no {}, which this ranking needs{}", reader.path().string(),
                                    prompt, data_set.path, why.empty() ? "; `kvscope run` records it" : why));
}

bool is_token_column(const Column& column) { return column.name.starts_with("token_text"); }

Table make_white_space_visible(Table table) {
    for (Row& row : table.rows)
        for (size_t i = 0; i < row.cells.size(); ++i)
            if (auto* text = std::get_if<SharedText>(&row.cells[i]); text && is_token_column(table.columns[i]))
                *text = shown_token(*text);
    return table;
}

void RankingRows::add(const SubjectPair& pair, const RankedSubject& of, double key, std::vector<Cell> cells,
                      double second_key) {
    table_.add(pair, std::move(cells));
    of_.push_back(of);
    keys_.emplace_back(key, second_key);
}

Ranking RankingRows::take() {
    std::vector<size_t> order(keys_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto precedes = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a > b; };
    std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
        if (precedes(keys_[x].first, keys_[y].first)) return true;
        return !precedes(keys_[y].first, keys_[x].first) && precedes(keys_[x].second, keys_[y].second);
    });
    Ranking ranking{table_.take(), {}};
    std::vector<Row> rows;
    for (const size_t i : order) {
        rows.push_back(std::move(ranking.table.rows[i]));
        ranking.of.push_back(of_[i]);
    }
    ranking.table.rows = std::move(rows);
    return ranking;
}

}  // namespace kvscope::analysis
