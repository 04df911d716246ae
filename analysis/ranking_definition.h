#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/figure_definition.h"
#include "analysis/run_choice.h"
#include "analysis/sentences.h"
#include "analysis/subject_columns.h"

namespace kvscope::analysis {

struct TokenRange {
    int64_t first = 0;
    int64_t last = 0;  ///< included in the range
};
[[nodiscard]] inline TokenRange token_range_of_span(TokenSpan span) {
    return {static_cast<int64_t>(span.first), static_cast<int64_t>(span.last)};
}

/// Options of a ranking. Each definition lists the options that it uses.
struct RankingOptions {
    int prompt = 0;
    std::vector<RunChoice> runs;            ///< empty: the default of the ranking
    std::vector<int> layers;                ///< empty: all
    std::optional<double> threshold;        ///< nullopt: the default of the ranking
    std::optional<TokenRange> tokens = {};  ///< nullopt: all tokens that policies see
    std::string mark = {};                  ///< text to search for; empty: none

    /// Returns the options for chosen_runs(), compared_runs() and chosen_layers().
    [[nodiscard]] FigureOptions choice() const {
        FigureOptions options;
        options.prompt = prompt;
        options.runs = runs;
        options.layers = layers;
        return options;
    }
};

/// Item of a ranking's row. For a span of tokens, `subject.token` is the first token.
struct RankedSubject {
    Subject subject;
    int last_token = -1;  ///< last token of a span, inclusive; −1: not a span

    [[nodiscard]] bool operator==(const RankedSubject&) const = default;
};

struct Ranking {
    Table table;
    std::vector<RankedSubject> of;  ///< one per row of the table
};

enum class RankedRuns { none, any, two };

/// Threshold of a ranking. Only numbers above the threshold count.
struct RankingThreshold {
    std::string title;  ///< "KL above"
    std::string unit;
    double value = 0;  ///< default threshold
    double most = 0;   ///< largest allowed value; the smallest is 0
};

/// One ranking. Each file in analysis/rankings/ defines one ranking in a function named after the file:
/// `RankingDefinition heads_ranking()` in heads.cpp. The build generates the list that command line and app offer.
struct RankingDefinition {
    std::string name;     ///< as in `export --ranking`: the file's stem with '_' written '-'
    std::string title;    ///< "Heads that differ most": follows "Rank: " in the app's palette
    std::string summary;  ///< one sentence: the ranked items and the measure
    RankedRuns runs = RankedRuns::none;
    std::vector<FigureOption> options;
    /// Returns the rows sorted by the measure; NaN and unknown numbers come last.
    /// @throws NothingToShow with the missing data, FigureError for invalid options
    Ranking (*make)(const trace::Reader&, const RankingOptions&) = nullptr;
    std::optional<RankingThreshold> threshold = {};
};

[[nodiscard]] const std::vector<RankingDefinition>& ranking_definitions();

/// Returns nullptr if the ranking does not use the option.
[[nodiscard]] const FigureOption* find_option(const RankingDefinition& definition, std::string_view name);

/// Finds a ranking by name; '_' equals '-'. @throws FigureError that lists all rankings
const RankingDefinition& ranking_definition(std::string_view name);

/// @throws FigureError if an option is set that the ranking does not use, or is out of range
void check_options(const RankingDefinition& definition, const RankingOptions& options);

[[nodiscard]] Ranking make_ranking(const RankingDefinition& definition, const trace::Reader& reader,
                                   const RankingOptions& options);

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

    /// @param key sorted in descending order, NaN last; rows with equal keys keep their order
    /// @param cells as in SubjectTable::add
    void add(const RankedSubject& of, double key, std::vector<Cell> cells) {
        add({of.subject, of.subject}, of, key, std::move(cells));
    }
    /// Adds a row about a pair. @param of item that a click on the row selects
    void add(const SubjectPair& pair, const RankedSubject& of, double key, std::vector<Cell> cells);

    [[nodiscard]] Ranking take();

 private:
    SubjectTable table_;
    std::vector<RankedSubject> of_;
    std::vector<double> keys_;
};

}  // namespace kvscope::analysis
