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

/// How a run looks in every view.
struct RunLook {
    std::string label;          ///< "snapkv 128"; with the file's name before it where several traces are open
    std::string trace;          ///< that name; empty where one trace is open
    std::string badge = {};     ///< badge_in_text() of that trace; empty where one trace is open
    std::string run;            ///< the rest
    std::string recorded = {};  ///< the run's own label where a person gave it another; else empty
    analysis::LineStyle style;
};

/// A policy that the form of Run is to tick, with one of its parameters.
struct WantedPolicy {
    std::string policy, parameter, value;
};

/// The part of the token axis that all token maps show.
struct TokenAxis {
    double min = 0;
    double max = 0;  ///< not above min: everything
    void show_everything() { min = max = 0; }
};

/// What token maps that stand above one another, in windows of the same left and right edge, leave free on their right:
/// as much as that one which has something beside it, so that a token has one x in all of them.
class MapMargins {
 public:
    /// @param left, right of the window, pixels @param needed by this map @returns what to leave, in pixels: the most
    /// that was needed there in this frame, so far, or in the one before
    float share(float left, float right, float needed);
    /// @returns whether the margins are other than in the frame before
    bool end_frame();

 private:
    using Margins = std::map<std::pair<int, int>, float>;
    Margins now_, before_;
};

/// Everything that the views share: the open traces, the one selection, which runs are shown, A and B. Views read and
/// write it and never one another. Knows no ImGui. All calls from the window's thread.
class Session {
 public:
    explicit Session(Tasks& tasks_of_window) : tasks(tasks_of_window) {}

    Tasks& tasks;
    Selection selection;
    ChosenPair pair;
    TokenAxis token_axis;
    MapMargins map_margins;
    std::string mark;        ///< text whose occurrences are outlined in every view; empty: none
    std::string search;      ///< text that is searched in prompts, found places lit in every view
    ModelNames model_names;  ///< of all traces
    bool csv_safe = false;  ///< a setting: analysis::safe_for_spreadsheets of all CSV and TSV that is written or copied
    std::optional<WantedPolicy> wanted_policy;  ///< for the next form of a run that is drawn
    std::optional<bool> wanted_template;  ///< the chat template, for the next form of a run; unset: as it is there
    std::optional<bool> wanted_special;   ///< whether control tokens are parsed, likewise

    Cursor cursor() const { return selection.current(); }
    /// The run of which is told what is told of one alone: the one that the flicker shows, else the selected one.
    RunKey told_run() const { return pair.flicker ? *pair.flicker : cursor().run; }
    /// Where the token axis ends when it shows everything: behind the last token of the longest of the open traces'
    /// prompts.
    int64_t n_axis_tokens() const;
    /// What the mouse is over, in whichever view; empty where over nothing.
    Cursor hover() const { return hover_.current(); }
    /// Hover::leads
    bool hover_leads() const { return hover_.leads(); }
    void set_hover(const Cursor& cursor, bool leads = false) { hover_.set(cursor, leads); }
    /// @returns what Tasks::end_frame does
    std::optional<Tasks::Seconds> end_frame();

    /// With what is saved beside the trace. In the window's thread: a trace of 300 MB (65,536 tokens, 32 layers, scores
    /// of five runs) takes 5 to 8 ms to open and 3 ms to read anew, 10 to 15 ms while a worker reads scores, on two
    /// busy cores (tests/gui_session/open_bench.cpp); no reader holds HDF5 for longer than a piece of half a megabyte,
    /// or a layer.
    /// @returns the document, which is the trace that was open already where it is the same file and has not become
    /// another trace since; one that has takes the document's place, with an id of its own
    /// @throws what trace::Reader throws; std::runtime_error where notes on the trace that was there before cannot be
    /// saved
    /// @param is_written a job of this program is writing it: while it does, what is finished of it is shown, not the
    ///                   trace that it will replace
    /// @param wanted_id  the document's id, unless another file has had this id in this session; 0: a new id
    Document& open(const std::filesystem::path& path, bool is_written = false, int wanted_id = 0);
    /// Opens a trace that was closed as the document that it was. @throws as open
    Document& open_again(int document, const std::filesystem::path& path);
    void close(int document);
    const std::vector<std::unique_ptr<Document>>& documents() const { return documents_; }
    Document* document(int id) const;
    Document* document(const RunKey& key) const { return document(key.document); }
    /// The document of told_run() where a run of its prompt is shown, else the first of which one is, else that of
    /// told_run(), else the first; nullptr where none is open.
    Document* focus() const;

    bool exists(const RunKey& key) const;
    /// The run in its document's present reader. @throws std::out_of_range where it is gone
    RunAt at(const RunKey& key) const;
    const trace::RunAttributes& attributes(const RunKey& key) const;
    bool is_visible(const RunKey& key) const;
    /// Ends the flicker, and A and B being shown alone.
    void set_visible(const RunKey& key, bool visible);
    /// Where a trace has more runs than one looks at together and nobody chose yet: those of the largest budget that
    /// drops something alone. A and B stay, and so does the run of `chosen`, which a person has selected. @returns how
    /// many it has hidden
    size_t show_one_budget(Document& document, const RunKey& chosen = {});
    /// Of the shown compressed runs, the first whose scores say why a token was dropped, else the first.
    void select_first_run(const Document& document);
    /// The two that are compared: A and B, and what is left open is the first of the shown runs. Where both are left
    /// open and two traces have prompts of one length: a run of the second and its like in the first. Not valid where
    /// there are too few.
    std::pair<RunKey, RunKey> compared() const;
    /// Finished, shown runs of all open traces' current prompts, in order; `full` only where `with_full`.
    std::vector<RunKey> visible_runs(bool with_full = false) const;
    /// All of the current prompts.
    std::vector<RunKey> all_runs() const;
    RunLook look(const RunKey& key) const;
    /// The file's name, with its folder where two open traces have the same.
    std::string name_of(const Document& document) const;
    /// How the runs of a document's shown prompt look beside those of the other open traces.
    const std::vector<analysis::LineStyle>& styles_of(const Document& document) const {
        return styles_.of(document, documents_);
    }
    /// Changes when a run of any document gets another style.
    uint64_t styles_number() const { return styles_.number(documents_); }
    /// Stamp for Tasks of whatever is computed from one run.
    std::string stamp(const RunKey& key) const;

    /// Takes a what-if out of its document (Document::add_run), and out of selection, A and B.
    void remove_added_run(const RunKey& what_if);

    /// Another prompt of a trace is looked at; the selected run, A and B become the same runs of that prompt.
    void show_prompt(Document& document, int prompt);
    /// To what was selected before, or after it: of a run of another prompt, that prompt is looked at.
    void go_back();
    void go_forward();

 private:
    /// Where the two that are compared are shown alone.
    void put_a_before_b(std::vector<RunKey>& runs) const;
    /// What belongs to a document that was just opened.
    Document& take_in(Document& document);
    void forget(int document);
    int id_for(const std::filesystem::path& path, int wanted) const;
    /// The run of another prompt that stands where this one does in the shown one; itself where it is none of the shown
    /// prompt, not valid where there is none.
    RunKey like_in(const Document& document, int prompt, const RunKey& run) const;
    void move_pair(const Document& document, int prompt);
    void show_selected_prompt();
    /// Of these runs, not valid where no run of the second open trace has its like (analysis::pair_runs) in the first.
    std::pair<RunKey, RunKey> first_pair_of_two_traces(const std::vector<RunKey>& runs) const;

    std::vector<std::unique_ptr<Document>> documents_;
    RunStyles styles_;
    std::map<int, std::filesystem::path> given_ids_;  ///< of all documents of this session, also closed ones
    Hover hover_;
};

}  // namespace kvscope::gui
