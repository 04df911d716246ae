#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/sentences.h"

namespace kvscope::analysis {

[[nodiscard]] inline TokenRange token_range_of_span(TokenSpan span) {
    return {static_cast<int64_t>(span.first), static_cast<int64_t>(span.last)};
}

/// Item of a ranking's row. For a span of tokens, `subject.token` is the first token.
struct RankedSubject {
    Subject subject;
    int last_token = -1;  ///< last token of a span, inclusive; −1: not a span
    int prompt = -1;      ///< index of the row's prompt; −1: the ranked prompt, or no prompt of the trace

    [[nodiscard]] bool operator==(const RankedSubject&) const = default;
};

struct Ranking {
    Table table;
    std::vector<RankedSubject> of;  ///< one per row of the table
};

/// Makes a definition without a drawing from a function that returns sorted rows.
/// @param rank returns the rows sorted by the measure; NaN and unknown numbers come last. Throws NothingToShow that
/// names the missing data, and FigureError for invalid options.
/// @param runs as FigureDefinition::shown_runs; nullptr if the ranking shows no runs
template <Ranking (*rank)(const trace::Reader&, const FigureOptions&), auto runs = nullptr>
[[nodiscard]] FigureDefinition define_ranking(std::string name, std::string title, std::string summary,
                                              std::vector<FigureOption> options) {
    FigureDefinition definition{std::move(name), std::move(title), std::move(summary), std::move(options)};
    definition.check = [](const trace::Reader& reader, const FigureOptions& chosen) {
        if (chosen.runs.empty()) return;
        if constexpr (!std::is_null_pointer_v<decltype(runs)>) runs(reader, chosen);
    };
    definition.numbers = [](const trace::Reader& reader, const FigureOptions& chosen) {
        return rank(reader, chosen).table;
    };
    definition.shown_runs = runs;
    definition.rank = rank;
    return definition;
}

/// @throws FigureError like check_options(), and the exceptions of FigureDefinition::rank
[[nodiscard]] Ranking make_ranking(const FigureDefinition& definition, const trace::Reader& reader,
                                   const FigureOptions& options);

/// @throws NothingToShow if the trace has no `window_attention`
void require_window_attention(const trace::Reader& reader, int prompt);

/// Returns the sum of the values of a range of tokens; NaN if there are no values.
[[nodiscard]] double sum_over_tokens(const std::vector<double>& values, TokenRange range);

/// Whether a column contains single tokens, whose white space must be made visible (shown_token).
[[nodiscard]] bool is_token_column(const Column& column);

/// Returns the table with visible white space in tokens.
[[nodiscard]] Table make_white_space_visible(Table table);

class RankingRows {
 public:
    explicit RankingRows(SubjectTable table) : table_(std::move(table)) {}

    /// @param key sorted in descending order, NaN last
    /// @param cells as in SubjectTable::add
    /// @param second_key sorts rows with equal keys in the same way; rows with two equal keys keep their order
    void add(const RankedSubject& of, double key, std::vector<Cell> cells, double second_key = 0) {
        add({of.subject, of.subject}, of, key, std::move(cells), second_key);
    }
    /// Adds a row about a pair. @param of item that a click on the row selects
    void add(const SubjectPair& pair, const RankedSubject& of, double key, std::vector<Cell> cells,
             double second_key = 0);

    [[nodiscard]] Ranking take();

 private:
    SubjectTable table_;
    std::vector<RankedSubject> of_;
    std::vector<std::pair<double, double>> keys_;
};

}  // namespace kvscope::analysis
