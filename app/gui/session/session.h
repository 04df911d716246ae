#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/figure.h"
#include "app/gui/session/chosen_pair.h"
#include "app/gui/session/document.h"
#include "app/gui/session/hover.h"
#include "app/gui/session/model_names.h"
#include "app/gui/session/run_selection.h"
#include "app/gui/session/run_styles.h"
#include "app/gui/session/tasks.h"

namespace kvscope::gui {

/// How views display a run.
struct RunLook {
    std::string label;          ///< "snapkv 128"; starts with the trace's name if several traces are open
    std::string trace;          ///< the trace's name; empty if one trace is open
    std::string badge = {};     ///< see badge_in_text(); empty if one trace is open
    std::string run;            ///< the label without the trace's name
    std::string recorded = {};  ///< recorded label if the user has given another; else empty
    analysis::LineStyle style;
};

/// A policy that the Run form should tick, with the value of a parameter.
struct WantedPolicy {
    std::string policy, parameter, value;
};

/// The range of tokens that all token maps show.
struct TokenAxis {
    double min = 0;
    double max = 0;  ///< max ≤ min shows everything
    void show_everything() { min = max = 0; }
};

/// Gives token maps that stand above one another a common right margin, so that a token has the same x position in all
/// of them. Maps share a margin if the left and right edges of their ImGui windows agree.
class MapMargins {
 public:
    /// Returns the margin in pixels: the largest that was needed in this frame so far or in the last one.
    /// @param left, right edges of the ImGui window in pixels @param needed margin that this map needs
    float share(float left, float right, float needed);
    /// @returns whether a margin has changed since the last frame
    bool end_frame();

 private:
    using Margins = std::map<std::pair<int, int>, float>;
    Margins now_, before_;
};

/// State that the views share: open traces, the selection, visible runs, A and B. Views communicate only through it. UI
/// thread only; does not use ImGui.
class Session {
 public:
    explicit Session(Tasks& tasks_of_window) : tasks(tasks_of_window) {}

    Tasks& tasks;
    Selection selection;
    ChosenPair pair;
    TokenAxis token_axis;
    MapMargins map_margins;
    std::string mark;    ///< text that every view outlines; may be empty
    std::string search;  ///< text to search in prompts; every view highlights the places found
    ModelNames model_names;
    bool csv_safe = false;  ///< setting: apply analysis::safe_for_spreadsheets to all exported CSV and TSV
    std::optional<WantedPolicy> wanted_policy;  ///< for the next Run form that is drawn
    std::optional<bool> wanted_template;        ///< chat template on or off, for the next Run form; unset: unchanged
    std::optional<bool>
        wanted_special;  ///< parsing of control tokens on or off, for the next Run form; unset: unchanged

    Cursor cursor() const { return selection.current(); }
    /// Returns the run that views of a single run show: the one that flicker shows, else the selected one.
    RunKey told_run() const { return pair.flicker ? *pair.flicker : cursor().run; }
    /// Returns the number of tokens of the longest shown prompt, the end of the token axis when it shows everything.
    int64_t n_axis_tokens() const;
    /// Returns what the mouse points at in any view; empty if nothing.
    Cursor hover() const { return hover_.current(); }
    /// See Hover::leads().
    bool hover_leads() const { return hover_.leads(); }
    void set_hover(const Cursor& cursor, bool leads = false) { hover_.set(cursor, leads); }
    /// @returns see Tasks::end_frame()
    std::optional<Tasks::Seconds> end_frame();

    /// Opens a trace with its annotations. A trace that is already open is read again; if its file is now another
    /// trace, that trace replaces the document under a new id.
    /// Runs on the UI thread, which is fast enough: on two busy cores, a trace of 300 MB (65,536 tokens, 32 layers,
    /// scores of five runs) takes 5 to 8 ms to open and 3 ms to read again, or 10 to 15 ms while a worker reads scores
    /// (tests/gui_session/open_bench.cpp). No reader holds the lock of HDF5 for longer than it takes to read half a
    /// megabyte or one layer.
    /// @param is_written a job of this program is writing the trace; until it ends, the unfinished trace is shown
    /// instead of the file it will replace
    /// @param wanted_id id for the document if it is free; 0: a new id
    /// @throws the exceptions of trace::Reader, and std::runtime_error if annotations of a replaced trace cannot be
    /// saved
    Document& open(const std::filesystem::path& path, bool is_written = false, int wanted_id = 0);
    /// Opens a closed trace again under its old id.
    /// @throws the exceptions of open()
    Document& open_again(int document, const std::filesystem::path& path);
    void close(int document);
    const std::vector<std::unique_ptr<Document>>& documents() const { return documents_; }
    Document* document(int id) const;
    Document* document(const RunKey& key) const { return document(key.document); }
    /// Returns the document of told_run() if it has a shown run, else the first document that has one, else the
    /// document of told_run(), else the first document. nullptr if none is open.
    Document* focus() const;

    bool exists(const RunKey& key) const;
    /// Returns the run in the document's present reader.
    /// @throws std::out_of_range if the run no longer exists
    RunAt at(const RunKey& key) const;
    const trace::RunAttributes& attributes(const RunKey& key) const;
    bool is_visible(const RunKey& key) const;
    /// Shows or hides a run. Ends flicker and the display of only A and B.
    void set_visible(const RunKey& key, bool visible);
    /// If a prompt has many runs and the user has not chosen any, hides all but those of the largest budget that drops
    /// something. A, B and `chosen` (a run that the user has selected) stay visible.
    /// @returns the number of runs that were hidden
    size_t show_one_budget(Document& document, const RunKey& chosen = {});
    /// Selects the first shown compressed run that has scores, or else the first shown compressed run.
    void select_first_run(const Document& document);
    /// Returns the runs to compare: A and B if chosen, else the first shown runs. If neither is chosen and two traces
    /// have prompts of equal length, returns a run of the second trace and the matching run of the first. Invalid if
    /// there are too few runs.
    std::pair<RunKey, RunKey> compared() const;
    /// Returns the finished and shown runs of all shown prompts in display order. Includes `full` only if `with_full`.
    std::vector<RunKey> visible_runs(bool with_full = false) const;
    /// Returns all runs of the shown prompts.
    std::vector<RunKey> all_runs() const;
    RunLook look(const RunKey& key) const;
    /// Returns the file name, preceded by the folder if two open traces have the same name.
    std::string name_of(const Document& document) const;
    /// Returns the styles of the runs of the document's shown prompt (see RunStyles).
    const std::vector<analysis::LineStyle>& styles_of(const Document& document) const {
        return styles_.of(document, documents_);
    }
    /// Returns a number that changes when the style of any run changes.
    uint64_t styles_number() const { return styles_.number(documents_); }
    /// Returns the stamp for Tasks that depend on one run.
    std::string stamp(const RunKey& key) const;

    /// Removes a what-if from its document, the selection, A and B.
    void remove_added_run(const RunKey& what_if);

    /// Shows another prompt of a trace. The selected run, A and B move to the same runs of that prompt.
    void show_prompt(Document& document, int prompt);
    /// Go to the previous or next selection in the history. If its run belongs to another prompt, that prompt is shown.
    void go_back();
    void go_forward();

 private:
    /// Moves A before B if only two runs are shown.
    void put_a_before_b(std::vector<RunKey>& runs) const;
    /// Loads the annotations of a newly opened document and chooses visible runs and selection.
    Document& take_in(Document& document);
    void forget(int document);
    int id_for(const std::filesystem::path& path, int wanted) const;
    /// Returns the counterpart of a run in another prompt. Returns the run itself if it is not in the shown prompt, and
    /// an invalid key if there is no counterpart.
    RunKey like_in(const Document& document, int prompt, const RunKey& run) const;
    void move_pair(const Document& document, int prompt);
    void show_selected_prompt();
    /// Returns the first run of the second open trace that has a matching run in the first (analysis::pair_runs), and
    /// that run. Invalid if there is no pair.
    std::pair<RunKey, RunKey> first_pair_of_two_traces(const std::vector<RunKey>& runs) const;

    std::vector<std::unique_ptr<Document>> documents_;
    RunStyles styles_;
    std::map<int, std::filesystem::path> given_ids_;  ///< paths of all documents by id, including closed ones
    Hover hover_;
};

}  // namespace kvscope::gui
