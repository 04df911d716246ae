#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drawing/figure.h"
#include "app/gui/session/document.h"
#include "app/gui/session/renaming.h"
#include "app/gui/session/selection.h"
#include "app/gui/session/tasks.h"

namespace kvscope::gui {

struct ChosenPair {
    std::optional<RunKey> a, b;
    bool alone = false;             ///< show only A and B; has an effect only if both are chosen
    std::optional<RunKey> flicker;  ///< the run that flicker shows instead of all others

    [[nodiscard]] bool is_complete() const { return a && b && *a != *b; }
    [[nodiscard]] bool is_alone() const { return alone && is_complete(); }
    [[nodiscard]] bool has(const RunKey& run) const { return a == run || b == run; }

    /// Sets or clears A or B. Resets `alone` if a complete pair becomes incomplete.
    void choose(std::optional<RunKey>& slot, const std::optional<RunKey>& run) {
        const bool was_complete = is_complete();
        slot = run;
        alone = alone && (is_complete() || !was_complete);
    }

    void forget(const RunKey& run) {
        forget_where([&](const RunKey& each) { return each == run; });
    }
    void forget_document(int document) {
        forget_where([&](const RunKey& each) { return each.document == document; });
    }

 private:
    template <class IsGone>
    void forget_where(const IsGone& is_gone) {
        const bool was_complete = is_complete();
        for (auto* slot : {&a, &b, &flicker})
            if (*slot && is_gone(**slot)) slot->reset();
        alone = alone && (is_complete() || !was_complete);
    }
};

/// Cached styles of the runs of all shown prompts.
class RunStyles {
 public:
    using Documents = std::vector<std::unique_ptr<Document>>;

    const std::vector<analysis::LineStyle>& of(const Document& document, const Documents& documents) const;
    [[nodiscard]] uint64_t number(const Documents& documents) const;
    void clear();

 private:
    mutable std::vector<std::pair<std::shared_ptr<const trace::Reader>, int>> prompts_;
    mutable std::vector<std::vector<analysis::LineStyle>> of_documents_;
    mutable uint64_t number_ = 0;
};

struct RunLook {
    std::string label;          ///< "snapkv 128"; starts with the trace's name if several traces are open
    std::string trace;          ///< the trace's name; empty if one trace is open
    std::string badge = {};     ///< see badge_in_brackets(); empty if one trace is open
    std::string run;            ///< the label without the trace's name
    std::string recorded = {};  ///< recorded label if the user has given another label; otherwise empty
    analysis::LineStyle style;
};

struct WantedPolicy {
    std::string policy, parameter, value;
};

/// Samples of a task that the Rankings view lists.
struct WantedSamples {
    int document = -1;
    std::string runs;  ///< runs as in the option `runs` of the ranking `samples`: "snapkv @ 64"
};

struct TokenAxis {
    double min = 0;
    double max = 0;  ///< max ≤ min shows everything
    void show_everything() { min = max = 0; }
};

/// Common right margin of token maps that are drawn one above the other, so that their tokens are aligned. Maps belong
/// together if their ImGui windows have the same left and right edges.
class MapMargins {
 public:
    /// Returns the largest margin in pixels that any of these maps has needed in this frame or the previous frame.
    [[nodiscard]] float share(float left, float right, float needed);
    [[nodiscard]] bool end_frame();

 private:
    using Margins = std::map<std::pair<int, int>, float>;
    Margins now_, before_;
};

/// State that all views share and through which they communicate. UI thread only; does not use ImGui.
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
    std::optional<WantedPolicy> wanted_policy;    ///< for the next Run form that is drawn
    std::optional<WantedSamples> wanted_samples;  ///< for the next Rankings view that is drawn
    std::string wanted_view;                      ///< kind of view that the app shows in the next frame; may be empty
    std::optional<bool> wanted_template;          ///< chat template on or off, for the next Run form; unset: unchanged
    std::optional<bool>
        wanted_special;  ///< parsing of control tokens on or off, for the next Run form; unset: unchanged

    [[nodiscard]] Cursor cursor() const { return selection.current(); }
    /// Returns the run to show in views of a single run: during flicker the visible run, otherwise the selected run.
    [[nodiscard]] RunKey displayed_run() const { return pair.flicker ? *pair.flicker : cursor().run; }
    [[nodiscard]] int64_t n_axis_tokens() const;
    [[nodiscard]] Cursor hover() const { return hover_.current(); }
    [[nodiscard]] bool hover_leads() const { return hover_.leads(); }
    void set_hover(const Cursor& cursor, bool leads = false) { hover_.set(cursor, leads); }
    std::optional<Tasks::Seconds> end_frame();

    /// Opens a trace with its annotations, or reads it again. Replaces the document if the file has become another
    /// trace. Throws the exceptions of trace::Reader and save_annotations().
    /// @param is_written a job is writing the trace; shows the unfinished trace, not the file that it will replace
    /// @param wanted_id id for the document if it is free; 0: a new id
    Document& open(const std::filesystem::path& path, bool is_written = false, int wanted_id = 0);
    /// Opens a closed trace again under its old id. Throws like open().
    Document& open_again(int document, const std::filesystem::path& path);
    void close(int document);
    [[nodiscard]] const std::vector<std::unique_ptr<Document>>& documents() const { return documents_; }
    [[nodiscard]] Document* document(int id) const;
    [[nodiscard]] Document* document(const RunKey& key) const { return document(key.document); }
    /// Returns the document of displayed_run() or the first document. Prefers documents with a shown run. Returns
    /// nullptr if no trace is open.
    [[nodiscard]] Document* focus() const;

    [[nodiscard]] bool exists(const RunKey& key) const;
    /// Throws std::out_of_range if the run no longer exists.
    [[nodiscard]] RunAt at(const RunKey& key) const;
    [[nodiscard]] const trace::RunAttributes& attributes(const RunKey& key) const;
    [[nodiscard]] bool is_visible(const RunKey& key) const;
    /// Shows or hides a run. Ends flicker and ChosenPair::alone.
    void set_visible(const RunKey& key, bool visible);
    /// If a prompt has many runs and the user has not chosen any, shows only the runs with the largest budget that
    /// drops entries. A, B and `chosen` stay visible. Returns the number of hidden runs.
    size_t show_one_budget(Document& document, const RunKey& chosen = {});
    /// Selects the first shown compressed run with scores or, if there is none, the first shown compressed run.
    void select_first_run(const Document& document);
    /// Returns A and B or, if not chosen, matching runs of two traces or the first shown runs. The keys may be invalid.
    [[nodiscard]] std::pair<RunKey, RunKey> compared() const;
    /// Returns the finished and shown runs of all shown prompts in display order.
    [[nodiscard]] std::vector<RunKey> visible_runs(bool with_full = false) const;
    [[nodiscard]] std::vector<RunKey> all_runs() const;
    [[nodiscard]] RunLook look(const RunKey& key) const;
    /// Returns the file name, with its folder if two open traces have the same name.
    [[nodiscard]] std::string name_of(const Document& document) const;
    [[nodiscard]] const std::vector<analysis::LineStyle>& styles_of(const Document& document) const {
        return styles_.of(document, documents_);
    }
    /// Returns a number that changes with the style of any run.
    [[nodiscard]] uint64_t styles_number() const { return styles_.number(documents_); }
    [[nodiscard]] std::string stamp(const RunKey& key) const;

    void remove_added_run(const RunKey& what_if);

    /// Shows another prompt of a trace. The selected run, A and B move to the same runs of that prompt.
    void show_prompt(Document& document, int prompt);
    void go_back();
    void go_forward();

 private:
    void put_a_before_b(std::vector<RunKey>& runs) const;
    [[nodiscard]] Document& take_in(Document& document);
    void forget(int document);
    [[nodiscard]] int id_for(const std::filesystem::path& path, int wanted) const;
    [[nodiscard]] RunKey like_in(const Document& document, int prompt, const RunKey& run) const;
    void move_pair(const Document& document, int prompt);
    void show_selected_prompt();
    [[nodiscard]] std::pair<RunKey, RunKey> first_pair_of_two_traces(const std::vector<RunKey>& runs) const;

    std::vector<std::unique_ptr<Document>> documents_;
    RunStyles styles_;
    std::map<int, std::filesystem::path> given_ids_;  ///< paths of all documents by id, including closed ones
    Hover hover_;
};

/// Returns the number of a trace in this session: "1", "2", …. The number is not reused after the trace is closed.
[[nodiscard]] std::string trace_badge_of(const Document& document);

/// Returns the badge in brackets: "[2]".
[[nodiscard]] std::string badge_in_brackets(const Document& document);

/// Returns the badge of a trace for figure titles, followed by the trace's name if the name is short.
[[nodiscard]] std::string trace_title(const Session& session, const Document& document);

[[nodiscard]] std::string label_in_title(const Session& session, const RunKey& run);

}  // namespace kvscope::gui
