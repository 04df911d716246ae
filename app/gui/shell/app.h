#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/session/session.h"
#include "app/gui/session/settings.h"
#include "app/gui/session/tasks.h"
#include "app/gui/shell/help_popups.h"
#include "app/gui/shell/notices.h"
#include "app/gui/shell/window.h"
#include "app/gui/view/actions.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

class FileDialog;

struct AppOptions {
    std::vector<std::filesystem::path> traces;
    std::string mark;                  ///< text to outline in every view
    std::string select;                ///< what parse_selection takes; empty: nothing
    std::string layout;                ///< explore | compare | report; empty: the remembered one
    std::string view;                  ///< this view alone, filling the window
    bool remember = true;              ///< read and write the person's settings
    bool run_demo = false;             ///< start the demo job at once (in a build with the engine)
    int n_threads = 0;                 ///< that models run on; 0: one a core
    std::optional<bool> use_template;  ///< how the run's form begins; unset: as it was left
};

/// What a view threw instead of drawing, and what it was to show.
struct ViewFailure {
    std::string message;
    std::string shown;  ///< the selected run and how it then was
};

/// A dockable window on the screen: a view and its place.
struct OpenView {
    const ViewKind* kind = nullptr;
    int number = 1;
    std::unique_ptr<View> view;
    bool open = true;
    bool is_docked = false;
    bool focus = false;         ///< bring to the front in the next frame
    std::string id() const;     ///< "retention-1"
    std::string title() const;  ///< "Retention###retention-1", "Retention 2###retention-2"
    /// While it is set the message is shown in the view's place: until a person tries again, or selects another run.
    std::optional<ViewFailure> failure{};
};

/// The whole window: menus, layouts, views, dialogs. One frame at a time; knows nothing of what views show.
class App {
 public:
    App(Window& window, AppOptions options);
    ~App();
    App(const App&) = delete;
    App& operator=(const App&) = delete;

    /// Draws everything. False: the window is to be closed.
    bool frame();
    /// In place of a frame while the window cannot be seen: what the engine and the tasks hand over is taken.
    void unseen_frame();
    /// Before the window closes: settings are saved. False where something has to be finished or confirmed first.
    bool may_close();

    /// Opens a trace or, beside those that are open, a further one; what goes wrong becomes a notice.
    void open_trace(const std::filesystem::path& path);
    void open_files(const std::vector<std::filesystem::path>& paths);

    /// One file with the open traces, their notes, layout and selection. @throws WorkspaceError
    void save_workspace(const std::filesystem::path& path);
    void open_workspace(const std::filesystem::path& path);

    /// The views instead of the start cards, although no trace is open.
    const Settings& settings() const { return settings_; }
    void dismiss_start() { start_dismissed_ = true; }

    void apply_layout(const std::string& name);
    OpenView& open_view(const ViewKind& kind);
    /// Brings the first of its kind to the front, with the keyboard, or opens one; leaves the start cards.
    void show_view(const ViewKind& kind);
    /// "explore", "compare", "report"
    static const std::vector<std::string>& layout_names();

    nlohmann::json layout_state() const;
    /// Unknown kinds of view and damaged parts are left out.
    /// @param keep_views views that are open stay as they are set; else everything is as the state has it
    void restore_layout(const nlohmann::json& state, bool keep_views = false);

    Session& session() { return session_; }
    Tasks& tasks() { return tasks_; }
    Actions& actions() { return actions_; }
    EngineSession* engine() { return engine_.get(); }
    const std::vector<std::unique_ptr<OpenView>>& views() const { return views_; }
    /// The view that has, or last had, the keyboard.
    OpenView* focused_view() const;
    const Theme& theme() const { return theme_; }
    const std::vector<std::string>& notices() const { return notices_.all(); }
    /// What views have thrown while they were drawn, since the window opened.
    const std::vector<std::string>& view_failures() const { return view_failures_; }
    /// Notices that say what went wrong, and views' failures.
    size_t n_errors() const { return notices_.n_errors() + view_failures_.size(); }

    void set_light(bool light);
    void set_scale(float scale);

    /// A message that a person should see; it goes away by itself and stays in the log.
    void notice(const std::string& text, bool is_error = false);
    /// What a part of the frame throws is told once, and the rest of the frame is drawn.
    void attempt(const char* part, const std::function<void()>& draw);
    void end_frame();

 private:
    /// What undo goes back through, besides places.
    struct Choices {
        Cursor cursor;
        std::optional<RunKey> a, b;
        std::string mark;
        std::map<int, std::set<RunKey>> hidden;                ///< by document
        std::map<int, std::map<int, std::set<int64_t>>> pins;  ///< by document and prompt
        std::vector<std::string> views;
        bool operator==(const Choices&) const = default;
    };
    struct UndoStep {
        Choices choices;
        std::string places;  ///< splitters, tabs, floating views
        nlohmann::json layout;
    };
    /// How a trace is looked at, as session_state.h's view_state() has it.
    struct RememberedView {
        nlohmann::json by_default;  ///< as it opens where nothing is remembered
        nlohmann::json last;        ///< as it was when it was saved last, or opened
        nlohmann::json in_file;     ///< null: as by default
    };

    void add_actions();
    void draw_menu_bar();
    void draw_views();
    void draw_view(OpenView& open, Context& context);
    void draw_failure(OpenView& open);
    void note_failure(OpenView& open, const std::string& message);
    void set_view(OpenView& open, const nlohmann::json& state);
    std::string what_is_shown() const;
    void draw_start();
    void save_changed_annotations();
    bool has_unsaved_annotations() const;
    /// Saves what is to be saved. @returns false where a person's notes would be lost, the first time
    bool may_leave();
    void remember_view(Document& document);
    void save_changed_views();
    /// Views of traces and, where it is remembered, the layout.
    void save_changes();
    /// True in a frame in which something was clicked, typed or turned.
    static bool has_input();
    void remember_undo();
    void refresh_undo();
    void undo();
    void redo();
    void apply_style();
    void build_layout(unsigned dock_space);
    /// Where a trace has a task's scores and no prompt, they come to the front.
    void show_scores();
    UndoStep present_step() const;  ///< without `layout`
    void go_to_step(const UndoStep& step);
    void ask_for_trace();
    void ask_for_model();
    void ask_for_workspace();
    void export_focused();
    void copy_focused_figure();
    void copy_as_seen(const View& view);
    void take_picture();
    void copy_command();
    void open_model(const std::filesystem::path& path);
    /// A text file for the Run view's prompt. @returns whether there is one that takes it
    bool take_text(const std::filesystem::path& path);

    Window& window_;
    AppOptions options_;
    Settings settings_;
    Tasks tasks_;
    Session session_;
    Actions actions_;
    Theme theme_;
    std::unique_ptr<EngineSession> engine_;
    std::vector<std::unique_ptr<OpenView>> views_;
    std::string wanted_layout_;  ///< built at the next frame, when the dock space is known
    std::string focused_;
    std::set<std::string> told_failures_;  ///< of parts of the frame
    std::string focus_in_the_end_;         ///< title of the view that has the keyboard after a layout is built
    Notices notices_;
    std::vector<std::string> view_failures_;
    HelpPopups help_;
    unsigned dock_space_ = 0;
    std::vector<UndoStep> undo_;
    std::vector<UndoStep> redo_;
    int frames_of_input_ = 0;   ///< left, after some, in which what changes is a person's doing
    int frames_to_drop_ = 0;    ///< left until what was dragged is in its place
    int frames_to_settle_ = 0;  ///< left until a new layout has its places
    double save_at_ = -1;       ///< time of the next save; negative: nothing has happened since the last
    std::map<int, RememberedView> remembered_;  ///< by document
    Settings saved_settings_;
    nlohmann::json workspace_ = nlohmann::json::object();  ///< as it was opened or saved last
    std::vector<nlohmann::json> views_of_later_;           ///< in the layout, of kinds that this program has not
    std::string annotations_failure_;                      ///< told last
    std::string settings_failure_;
    bool annotations_wait_ = false;  ///< they could not be saved: not again in each frame
    bool warned_of_loss_ = false;    ///< and closing again loses them
    std::unique_ptr<FileDialog> files_;
    std::string picture_of_;      ///< the view to be copied as it is seen, by its id; empty: none
    int frames_to_picture_ = 0;   ///< until its menu is gone
    bool scores_wanted_ = false;  ///< when the layout is there
    bool start_dismissed_ = false;
    std::filesystem::path wanted_model_;  ///< remembered once it is loaded
    std::filesystem::path wanted_text_;   ///< for the Run view, once the layout is there
    bool quit_ = false;
};

}  // namespace kvscope::gui
