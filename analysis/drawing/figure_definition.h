#pragma once

#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/tables/table.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Thrown if the caller chose a figure or option that does not exist or does not fit the trace.
struct FigureError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// Thrown if the trace has no data for the figure.
struct NothingToShow : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Choice of runs: an index in the prompt, or a text with a label, a run number or a policy (for all its runs).
using RunChoice = std::variant<std::string, int>;
[[nodiscard]] inline std::string name_of(const RunChoice& choice) {
    const auto* name = std::get_if<std::string>(&choice);
    return name ? *name : std::to_string(std::get<int>(choice));
}

struct TokenRange {
    int64_t first = 0;
    int64_t last = 0;  ///< included in the range
};

/// Options of a figure. Each definition lists the options that it uses.
struct FigureOptions {
    int prompt = 0;
    std::vector<RunChoice> runs;       ///< empty: the figure's own choice
    std::vector<int> layers;           ///< empty: all, or the figure's own choice
    std::vector<int> heads;            ///< query heads; empty: all, or the figure's own choice
    std::vector<std::string> columns;  ///< column names of a table as in its CSV; empty: the figure's own choice
    std::string source;                ///< name of one of several related measures; empty: the first
    bool title = false;                ///< whether to draw the title (papers use captions instead)
    double width_mm = 0;               ///< 0: the default of the figure
    double height_mm = 0;              ///< 0: the default of the figure
    /// New labels for the policy settings of task results; the key is the setting (analysis/runs/rename_runs.h).
    std::map<std::string, std::string> setting_labels = {};
    /// Shows KV heads instead of query heads, so that runs with different heads can be subtracted.
    bool common_unit = false;
    std::optional<TokenRange> tokens = {};  ///< nullopt: all tokens that policies see
    /// Texts of the figure's own options (FigureOption::is_own), by name.
    std::map<std::string, std::string> own = {};

    /// Returns the text of one of the figure's own options, or `otherwise` if it is empty.
    [[nodiscard]] std::string own_text(const std::string& name, const std::string& otherwise) const;
    /// Returns the number of one of the figure's own options. @throws FigureError unless it is in [least, most]
    [[nodiscard]] double numeric_option(const std::string& name, double otherwise, double least, double most) const;
};

/// One of the traces that a figure shows, with the options for this trace.
struct TracePart {
    const trace::Reader* reader = nullptr;
    FigureOptions options;
    std::string name = {};               ///< prefix that distinguishes this trace's items; empty for a single trace
    std::vector<LineStyle> styles = {};  ///< one per run of the prompt; empty: run_styles()
    bool against_each = false;           ///< In a difference, B's only run is subtracted from each run of A.
};

/// A number from 0 to `most`, for an option with a field in the app. The app refuses any other input.
struct NumberField {
    std::string title;  ///< "KL above"
    std::string unit;
    double value = 0;  ///< the default
    double most = 0;
};

struct FigureOption {
    std::string name;  ///< "runs", "layers" or "source"; an option of a single figure has the name of its flag
    std::string help;  ///< one line, with the default
    std::vector<std::string> choices = {};     ///< all allowed values, the default first; empty: any text
    std::vector<std::string> of_sources = {};  ///< sources that use this option; empty: all sources
    /// Text in the empty field, such as the default "90".
    /// An option that only one figure has sets `hint` or `number`.
    std::string hint = {};
    std::optional<NumberField> number = {};

    [[nodiscard]] bool is_own() const { return !hint.empty() || number; }
};

struct Ranking;

/// A figure, or a ranking, which has a table and no drawing. Each file in analysis/figures/ and analysis/rankings/
/// defines one in a function named after the file: `FigureDefinition retention_figure()` in retention.cpp. The build
/// collects these functions in all_definitions().
struct FigureDefinition {
    std::string name;     ///< as in `export --figure`: the file's stem with '_' written '-'
    std::string title;    ///< such as "Retention"; the app's palette shows "Rank: " before the title of a ranking
    std::string summary;  ///< one sentence: the contents and the measure
    std::vector<FigureOption> options;
    /// Checks whether `make` and `numbers` can be called. @throws NothingToShow, FigureError for invalid options
    void (*check)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Draws the figure. nullptr for a ranking. @throws as `check`
    Figure (*make)(const trace::Reader&, const FigureOptions&) = nullptr;
    Table (*numbers)(const trace::Reader&, const FigureOptions&) = nullptr;  ///< returns the drawn numbers
    std::string paper = {};  ///< similar published figure: "ApertureKV, Figure 5"; empty if none
    /// Draws several traces in one plot. If nullptr, their panels are drawn side by side.
    Figure (*make_joint)(std::span<const TracePart>) = nullptr;
    /// Draws A − B for paired runs (analysis/runs/run_pairs.h). If nullptr, maps and curves with equal names are
    /// subtracted.
    Figure (*make_difference)(std::span<const TracePart, 2>) = nullptr;
    Table (*difference_numbers)(std::span<const TracePart, 2>) = nullptr;
    /// Describes the default choice: "only snapkv @ 64, the first of 24 runs". Empty if nothing is left out.
    std::string (*own_choice)(const trace::Reader&, const FigureOptions&) = nullptr;
    bool runs_are_settings = false;  ///< Option "runs" names settings of task results, not runs of a prompt.
    bool may_have_pages = false;     ///< `make` may return several pages (Panel::page).
    /// Names the chosen runs that cannot be shown, and the reason. Empty if all can be shown.
    std::string (*left_out)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Returns the shown runs in order. If nullptr, the figure shows no runs.
    std::vector<int> (*shown_runs)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Whether the figure shows one prompt, not the model or task results. If nullptr, the figure shows one prompt.
    bool (*is_of_prompt)(const FigureOptions&) = nullptr;
    /// Returns the rows of `numbers`, and the layer, head, token or run of each row (analysis/ranking.h). nullptr for a
    /// figure with a drawing.
    Ranking (*rank)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Returns the numbers of several traces in one table. If nullptr, the table has the rows of each trace's
    /// `numbers`.
    Table (*joint_numbers)(std::span<const TracePart>) = nullptr;

    [[nodiscard]] bool has_drawing() const { return make != nullptr; }
};

/// Implements `make` with a function for any number of traces.
template <Figure (*joint)(std::span<const TracePart>)>
[[nodiscard]] Figure make_from_one_trace(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    return joint({&part, 1});
}

/// Implements `numbers` with a function for any number of traces.
template <Table (*joint)(std::span<const TracePart>)>
[[nodiscard]] Table numbers_from_one_trace(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    return joint({&part, 1});
}

/// Returns the definitions of all files, the figures with a drawing before the rankings.
[[nodiscard]] const std::vector<FigureDefinition>& all_definitions();

/// Returns the definitions with a drawing.
[[nodiscard]] std::span<const FigureDefinition> figure_definitions();
/// Returns the definitions without a drawing.
[[nodiscard]] std::span<const FigureDefinition> ranking_definitions();

/// Finds a figure or ranking by name; '_' equals '-'. @throws FigureError with the names of all figures if no figure or
/// ranking has this name
[[nodiscard]] const FigureDefinition& figure_definition(std::string_view name);
/// Finds a ranking by name; '_' equals '-'. @throws FigureError with the names of all rankings if none has this name
[[nodiscard]] const FigureDefinition& ranking_definition(std::string_view name);

[[nodiscard]] const FigureOption* find_option(const std::vector<FigureOption>& options, std::string_view name);

/// Returns nullptr if the figure does not use the option.
[[nodiscard]] const FigureOption* find_option(const FigureDefinition& definition, std::string_view name);

/// Returns the name of the command-line option, "--run" for the option "runs".
[[nodiscard]] std::string option_flag(const FigureOption& option);

/// Returns "--run, --layer, --source", or "no options".
[[nodiscard]] std::string options_in_words(const std::vector<FigureOption>& options);

[[nodiscard]] std::string underscores_to_hyphens(std::string_view name);

/// @throws FigureError if an option is set that the figure does not use, the source is unknown, or a number is too
/// large
void check_options(const FigureDefinition& definition, const FigureOptions& options);

/// Returns only those options that the figure uses.
[[nodiscard]] FigureOptions options_used_by_figure(const FigureDefinition& definition, const FigureOptions& options);

/// Returns why the trace cannot have the figure, or an empty text. @throws FigureError for invalid options
[[nodiscard]] std::string why_no_figure(const FigureDefinition& definition, const trace::Reader& reader,
                                        const FigureOptions& options);

}  // namespace kvscope::analysis
