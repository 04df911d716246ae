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

/// A figure or an option of one that does not exist, or does not fit this trace: the caller's choice has to change.
struct FigureError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// A trace that has no data for the figure asked of it.
struct NothingToShow : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Runs as a person calls them: a label, a policy's name (all its runs), or a number; or the one at a place of the
/// reader's prompt.
using RunChoice = std::variant<std::string, int>;

/// What a person may choose about a figure. Each definition names the ones it heeds.
struct FigureOptions {
    int prompt = 0;
    std::vector<RunChoice> runs;       ///< empty: the figure's own choice
    std::vector<int> layers;           ///< empty: all, or the figure's own choice
    std::vector<int> heads;            ///< query heads; empty: all, or the figure's own choice
    std::vector<std::string> columns;  ///< of a table, as its CSV names them; empty: the figure's own choice
    std::string source;                ///< which of several measures of one kind; empty: the first
    bool title = false;                ///< draw the title (papers have captions instead)
    double width_mm = 0;               ///< 0: the figure's own
    double height_mm = 0;              ///< 0: the figure's own
    /// What settings of a task's results are called, by the settings (analysis/renamed_runs.h).
    std::map<std::string, std::string> setting_labels = {};
    /// Heads are counted in a unit that runs by query heads and runs by KV heads have in common: shares of heads, and
    /// numbers of a KV head. A difference of such runs sets it.
    bool common_unit = false;
    /// What was typed for options that a figure declares for itself (FigureOption::is_own), by their names.
    std::map<std::string, std::string> own = {};

    /// Of an option of the figure's own. @returns `otherwise` where nothing was typed
    std::string own_text(const std::string& name, const std::string& otherwise) const;
    /// @throws FigureError where it is no number of [least, most]
    double unique_id(const std::string& name, double otherwise, double least, double most) const;
};

/// What of a trace is shown in a figure that may be of several.
struct TracePart {
    const trace::Reader* reader = nullptr;
    FigureOptions options;
    std::string name = {};               ///< before what has to be told from other traces' things; empty: alone
    std::vector<LineStyle> styles = {};  ///< of the prompt's runs (joint_run_styles); empty: as in a trace alone
    bool against_each = false;           ///< B of a difference: its one run is subtracted from each of A's
};

struct FigureOption {
    std::string name;                          ///< "runs", "layers", "source"; of its own: as its flag, "threshold"
    std::string help;                          ///< one line, with the default
    std::vector<std::string> choices = {};     ///< all there are, the default first; empty: not from a list
    std::vector<std::string> of_sources = {};  ///< the sources with which it is heeded; empty: with all
    /// Of an option that this figure declares for itself: what its field shows while it is empty ("90"). The command
    /// line and the report offer it; the figure reads it by FigureOptions::own_text or unique_id.
    std::string hint = {};

    bool is_own() const { return !hint.empty(); }
};

/// One figure: how it is called, and how a trace becomes its picture and its numbers. Each file in analysis/figures/
/// defines one, by a function called after the file: `FigureDefinition retention_figure()` in retention.cpp. The build
/// lists them; nothing else has to change.
struct FigureDefinition {
    std::string name;     ///< as in `export --figure`: the file's stem, '_' written '-'
    std::string title;    ///< "Retention"
    std::string summary;  ///< one sentence: what it shows, from which measure
    std::vector<FigureOption> options;
    /// Whether this trace can have the figure, and can serve the options, before anything is drawn: what lists or
    /// writes several figures leaves out those that it cannot. `make` and `numbers` throw the same.
    /// @throws NothingToShow that says why not, FigureError for options that cannot be served
    void (*check)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Both throw what `check` throws, and what trace::Reader throws.
    Figure (*make)(const trace::Reader&, const FigureOptions&) = nullptr;
    Table (*numbers)(const trace::Reader&, const FigureOptions&) = nullptr;  ///< the very numbers that are drawn
    std::string paper = {};  ///< the published figure of the same kind: "ApertureKV, Figure 5"; empty: none
    /// Several traces in one plot, where they go into one; throws as `make`. Without it they stand side by side
    /// (analysis/several_traces.h).
    Figure (*make_joint)(std::span<const TracePart>) = nullptr;
    /// A − B of what two parts show, where runs are paired (analysis/run_pairs.h); throw as `make`. A figure with a
    /// curve for each run needs them: without them maps and curves of the same name are subtracted, and must have the
    /// same shape and the same x.
    Figure (*make_difference)(std::span<const TracePart, 2>) = nullptr;
    Table (*difference_numbers)(std::span<const TracePart, 2>) = nullptr;
    /// "snapkv @ 64 alone, the first of 24 runs" where the figure had to choose among what it could show; else empty.
    /// Throws as `check`.
    std::string (*own_choice)(const trace::Reader&, const FigureOptions&) = nullptr;
    bool runs_are_settings = false;  ///< its option "runs" names settings of a task's results, not a prompt's runs
    bool may_have_pages = false;     ///< where there is much to show, `make` gives several pages (Panel::page)
    /// "k-vec @ 64, laq @ 64, whose selection …": runs that were asked for, by themselves or as part of all, and are
    /// not shown, with the reason; else empty. Throws as `check`.
    std::string (*left_out)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// The runs that the figure shows, in its order. A difference without `make_difference` pairs them. nullptr: it
    /// shows none. Throws as `check`.
    std::vector<int> (*shown_runs)(const trace::Reader&, const FigureOptions&) = nullptr;
    /// Whether the figure is of one prompt, rather than of the model or of a task's results. nullptr: it is.
    bool (*is_of_prompt)(const FigureOptions&) = nullptr;
};

/// The `make` of a figure that is made of any number of traces.
template <Figure (*joint)(std::span<const TracePart>)>
Figure of_one_trace(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    return joint({&part, 1});
}

/// All figures, by name.
const std::vector<FigureDefinition>& figure_definitions();

/// '_' and '-' alike. @throws FigureError with the list of figures.
const FigureDefinition& figure_definition(std::string_view name);

/// The option of that name, or nullptr.
const FigureOption* option_of(const std::vector<FigureOption>& options, std::string_view name);

/// The option of that name ("runs"), or nullptr where the figure does not heed it.
const FigureOption* option_of(const FigureDefinition& definition, std::string_view name);

/// "--run" of "runs": an option on the command line. An option of a figure's own is called by its name.
std::string option_flag(const FigureOption& option);

/// "--run, --layer, --source": all that the figure heeds; "no options" where it heeds none.
std::string options_in_words(const std::vector<FigureOption>& options);

/// A name as it is written on the command line: '_' becomes '-'.
std::string dashed(std::string_view name);

/// That the figure heeds every option that is set, and has the source.
/// @throws FigureError that names what it heeds, or its sources
void check_options(const FigureDefinition& definition, const FigureOptions& options);

/// The options without those that the figure does not heed: for several figures that are given one set of options.
FigureOptions heeded_options(const FigureDefinition& definition, const FigureOptions& options);

/// What `check` throws as NothingToShow; empty where the trace can have the figure. @throws FigureError
std::string why_no_figure(const FigureDefinition& definition, const trace::Reader& reader,
                          const FigureOptions& options);

}  // namespace kvscope::analysis
