#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/figure_definition.h"
#include "analysis/run_choice.h"
#include "analysis/sentences.h"
#include "analysis/subject_table.h"

/// Rankings: things of a trace in the order of a number, as tables whose rows say what they are of.
namespace kvscope::analysis {

/// Tokens first to last, both included.
struct TokenRange {
    int64_t first = 0;
    int64_t last = 0;
};
inline TokenRange range_of(TokenSpan span) {
    return {static_cast<int64_t>(span.first), static_cast<int64_t>(span.last)};
}

/// What a person may choose about a ranking. Each definition names the options that it heeds.
struct RankingOptions {
    int prompt = 0;
    std::vector<RunChoice> runs;            ///< empty: the ranking's own choice
    std::vector<int> layers;                ///< empty: all
    std::optional<double> threshold;        ///< not set: the ranking's own
    std::optional<TokenRange> tokens = {};  ///< not set: all that policies see
    std::string mark = {};                  ///< text that is looked for; empty: none

    /// For chosen_runs, compared_runs and chosen_layers.
    FigureOptions choice() const {
        FigureOptions options;
        options.prompt = prompt;
        options.runs = runs;
        options.layers = layers;
        return options;
    }
};

/// What a row of a ranking is of. Of a span of tokens `subject.token` is the first.
struct RankedSubject {
    Subject subject;
    int last_token = -1;  ///< included; −1: of none

    bool operator==(const RankedSubject&) const = default;
};

struct Ranking {
    Table table;
    std::vector<RankedSubject> of;  ///< of each of the table's rows
};

/// Which runs a ranking is made from.
enum class RankedRuns { none, any, two };

/// A number above which something counts.
struct RankingThreshold {
    std::string title;  ///< "KL above"
    std::string unit;
    double value = 0;  ///< where nothing else was chosen
    double most = 0;   ///< the largest that can be chosen; 0 is the smallest
};

/// One ranking: how it is called, and how a trace becomes its table. Each file in analysis/rankings/ defines one, by a
/// function called after the file: `RankingDefinition heads_ranking()` in heads.cpp. The build lists them; command
/// line and window offer all there are.
struct RankingDefinition {
    std::string name;     ///< as in `export --ranking`: the file's stem, '_' written '-'
    std::string title;    ///< "Heads that differ most": behind "Rank: " in the window's palette
    std::string summary;  ///< one sentence: what is ranked, by which measure
    RankedRuns runs = RankedRuns::none;
    std::vector<FigureOption> options;
    /// In order, equal numbers by position. NaN and unknown numbers come last.
    /// @throws NothingToShow that says what is not recorded, FigureError for options that cannot be served, and what
    /// trace::Reader throws
    Ranking (*make)(const trace::Reader&, const RankingOptions&) = nullptr;
    std::optional<RankingThreshold> threshold = {};
};

/// All rankings, by name.
const std::vector<RankingDefinition>& ranking_definitions();

/// The option of that name ("tokens"), or nullptr where the ranking does not heed it.
const FigureOption* option_of(const RankingDefinition& definition, std::string_view name);

/// '_' and '-' alike. @throws FigureError with the list of rankings.
const RankingDefinition& ranking_definition(std::string_view name);

/// That the ranking heeds every option that is set, in its range. @throws FigureError that names what it heeds
void check_options(const RankingDefinition& definition, const RankingOptions& options);

/// check_options, then the ranking.
Ranking make_ranking(const RankingDefinition& definition, const trace::Reader& reader, const RankingOptions& options);

/// What ranks by `window_attention` needs. @throws NothingToShow that says what to record
void require_window_attention(const trace::Reader& reader, int prompt);

/// Of numbers of tokens those of a range, added up; NaN where there are none.
double sum_of(const std::vector<double>& values, TokenRange range);

/// Whether a column's texts are of single tokens, whose white space people have to be shown (shown_token).
bool is_of_tokens(const Column& column);

/// The same table for people: with the white space of tokens made visible.
Table for_people(Table table);

/// Rows with what they are ranked by.
class RankingRows {
 public:
    explicit RankingRows(SubjectTable table) : table_(std::move(table)) {}

    /// @param key the largest comes first; NaN last. Equal keys stay in the order in which rows were added.
    /// @param cells as SubjectTable::add
    void add(const RankedSubject& of, double key, std::vector<Cell> cells) {
        add({of.subject, of.subject}, of, key, std::move(cells));
    }
    /// Of A and B. @param of what a click selects
    void add(const SubjectPair& pair, const RankedSubject& of, double key, std::vector<Cell> cells);

    Ranking take();

 private:
    SubjectTable table_;
    std::vector<RankedSubject> of_;
    std::vector<double> keys_;
};

}  // namespace kvscope::analysis
