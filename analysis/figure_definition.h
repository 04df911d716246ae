#pragma once

#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/figure.h"
#include "analysis/tables/table.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// The caller chose a figure or an option that does not exist or does not fit this trace.
struct FigureError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// The trace has no data for the requested figure.
struct NothingToShow : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Choice of runs: a label, the name of a policy (all its runs), or a number as text; or the index of a run in its
/// prompt.
using RunChoice = std::variant<std::string, int>;

/// Options of a figure. Each definition lists the options that it uses.
struct FigureOptions {
    int prompt = 0;
    std::vector<RunChoice> runs;       ///< empty: the figure's own choice
    std::vector<int> layers;           ///< empty: all, or the figure's own choice
    std::vector<int> heads;            ///< query heads; empty: all, or the figure's own choice
    std::vector<std::string> columns;  ///< column names of a table as in its CSV; empty: the figure's own choice
    std::string source;                ///< which of several related measures; empty: the first
    bool title = false;                ///< draw the title (papers use captions instead)
    double width_mm = 0;               ///< 0: the default of the figure
    double height_mm = 0;              ///< 0: the default of the figure
    /// New labels of settings of task results, by the settings (analysis/renamed_runs.h).
    std::map<std::string, std::string> setting_labels = {};
    /// Uses KV heads as the common unit of query-head runs and KV-head runs: shares of heads, and sums or means per KV
    /// head. Differences between such runs set it.
    bool common_unit = false;
    /// Texts of the figure's own options (FigureOption::is_own), by name.
    std::map<std::string, std::string> own = {};

    /// Returns the text of one of the figure's own options, or `otherwise` if it is empty.
    std::string own_text(const std::string& name, const std::string& otherwise) const;
    /// Returns the number of one of the figure's own options. @throws FigureError unless it is in [least, most]
    double unique_id(const std::string& name, double otherwise, double least, double most) const;
};

/// One trace of a figure and its options.
struct TracePart {
    const trace::Reader* reader = nullptr;
    FigureOptions options;
    std::string name = {};               ///< prefix that distinguishes this trace's items; empty for a single trace
    std::vector<LineStyle> styles = {};  ///< of the prompt's runs (joint_run_styles); empty: run_styles()
    bool against_each = false;           ///< In a difference, B's only run is subtracted from each run of A.
};

struct FigureOption {
    std::string name;  ///< "runs", "layers", "source"; an own option has the name of its flag, "threshold"
    std::string help;  ///< one line, with the default
    std::vector<std::string> choices = {};     ///< all allowed values, the default first; empty: any text
    std::vector<std::string> of_sources = {};  ///< sources that use this option; empty: all sources
    /// Default that the empty field shows ("90"); set only for an option of this figure alone. The figure reads the
    /// option with FigureOptions::own_text or unique_id.
    std::string hint = {};

    bool is_own() const { return !hint.empty(); }
};

/// One figure. Each file in analysis/figures/ defines one figure in a function named after the file:
/// `FigureDefinition retention_figure()` in retention.cpp. The build generates the list of figures.
struct FigureDefinition {
    std::string name;     ///< as in `export --figure`: the file's stem with '_' written '-'
    std::string title;    ///< "Retention"
    std::string summary;  ///< one sentence: the contents and the measure
    std::vector<FigureOption> options;
    /// Checks whether this trace has the data for the figure with these options. `make` and `numbers` throw the same.
    /// @throws NothingToShow with the reason, FigureError for invalid options
    void (*check)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Returns the picture. @throws as `check`, and what trace::Reader throws
    Figure (*make)(const trace::Reader&, const FigureOptions&) = nullptr;
    Table (*numbers)(const trace::Reader&, const FigureOptions&) = nullptr;  ///< the drawn numbers
    std::string paper = {};  ///< similar published figure: "ApertureKV, Figure 5"; empty if none
    /// Draws several traces in one plot; throws as `make`. If nullptr, their panels are drawn side by side
    /// (analysis/several_traces.h).
    Figure (*make_joint)(std::span<const TracePart>) = nullptr;
    /// Returns A − B for paired runs (analysis/run_pairs.h); throws as `make`. Figures with one curve per run need it.
    /// If nullptr, maps and curves with equal names are subtracted, which requires equal shapes and x values.
    Figure (*make_difference)(std::span<const TracePart, 2>) = nullptr;
    Table (*difference_numbers)(std::span<const TracePart, 2>) = nullptr;
    /// Returns the default choice if the figure cannot show everything: "snapkv @ 64 alone, the first of 24 runs"; else
    /// an empty text. Throws as `check`.
    std::string (*own_choice)(const trace::Reader&, const FigureOptions&) = nullptr;
    bool runs_are_settings = false;  ///< Option "runs" names settings of task results, not runs of a prompt.
    bool may_have_pages = false;     ///< `make` may return several pages (Panel::page).
    /// Returns the chosen runs that the figure cannot show, with the reason: "k-vec @ 64, laq @ 64, whose selection …";
    /// else an empty text. Throws as `check`.
    std::string (*left_out)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Returns the runs that the figure shows, in its order. A difference without `make_difference` pairs these runs.
    /// nullptr: none. Throws as `check`.
    std::vector<int> (*shown_runs)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Whether the figure shows one prompt, not the model or task results. nullptr: true.
    bool (*is_of_prompt)(const FigureOptions&) = nullptr;
};

/// Implements `make` for a figure with a function for several traces.
template <Figure (*joint)(std::span<const TracePart>)>
Figure of_one_trace(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    return joint({&part, 1});
}

/// Returns all figures, sorted by name.
const std::vector<FigureDefinition>& figure_definitions();

/// Treats '_' and '-' as equal. @throws FigureError that lists all figures
const FigureDefinition& figure_definition(std::string_view name);

/// Returns the option with this name, or nullptr.
const FigureOption* option_of(const std::vector<FigureOption>& options, std::string_view name);

/// Returns the option with this name, or nullptr if the figure does not use it.
const FigureOption* option_of(const FigureDefinition& definition, std::string_view name);

/// Returns the command-line option: "--run" for "runs". An own option keeps its name.
std::string option_flag(const FigureOption& option);

/// Returns the used options as "--run, --layer, --source", or "no options".
std::string options_in_words(const std::vector<FigureOption>& options);

/// Returns a name as written on the command line, with '-' for '_'.
std::string dashed(std::string_view name);

/// Checks that the figure uses every option that is set, and has the source.
/// @throws FigureError that lists the used options or the sources
void check_options(const FigureDefinition& definition, const FigureOptions& options);

/// Returns the options that the figure uses, for commands that make several figures with one set of options.
FigureOptions heeded_options(const FigureDefinition& definition, const FigureOptions& options);

/// Returns the message of NothingToShow from `check`; empty if the trace has the data. @throws FigureError
std::string why_no_figure(const FigureDefinition& definition, const trace::Reader& reader,
                          const FigureOptions& options);

}  // namespace kvscope::analysis
