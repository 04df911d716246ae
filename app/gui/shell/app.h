#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "app/gui/session/tasks.h"
#include "app/gui/shell/appearance.h"
#include "app/gui/shell/autosave.h"
#include "app/gui/shell/current_workspace.h"
#include "app/gui/shell/file_opener.h"
#include "app/gui/shell/frame_guard.h"
#include "app/gui/shell/help_popups.h"
#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_views.h"
#include "app/gui/shell/quit_question.h"
#include "app/gui/shell/recent_files.h"
#include "app/gui/shell/saved_layouts.h"
#include "app/gui/shell/settings_store.h"
#include "app/gui/shell/start_cards.h"
#include "app/gui/shell/trace_sidecars.h"
#include "app/gui/shell/undo_history.h"
#include "app/gui/shell/view_picker.h"
#include "app/gui/shell/view_picture.h"
#include "app/gui/shell/window.h"
#include "app/gui/view/actions.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/rename_dialog.h"

namespace kvscope::gui {

struct AppOptions {
    std::vector<std::filesystem::path> traces;
    std::string mark;                   ///< text to outline in every view
    std::string select;                 ///< what parse_selection takes; empty: nothing
    std::string layout;                 ///< explore | compare | report; empty: the remembered one
    nlohmann::json saved_layout;        ///< one of Settings::layouts in place of `layout`; null: none
    std::string view;                   ///< this view alone, filling the window
    bool remember = true;               ///< read and write the person's settings
    bool run_demo = false;              ///< start the demo job at once (in a build with the engine)
    int n_threads = 0;                  ///< that models run on; 0: one a core
    std::function<void()> before_step;  ///< as make_engine_session has it; tests wait there
    std::optional<bool> use_template;   ///< how the run's form begins; unset: as it was left
    std::optional<bool> parse_special;  ///< as above
};

/// The whole window: menus, layouts, views, dialogs. One frame at a time; knows nothing of what views show. Puts the
/// parts together and says in which order they draw; what each of them does is in its own file.
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
    /// Before the window closes: settings are saved. False where something has to be finished or confirmed first; the
    /// question is then shown, and its answer closes the window.
    /// @param is_ordered by the system, or confirmed: nobody is asked
    bool may_close(bool is_ordered = false);

    /// Opens a trace or, beside those that are open, a further one; what goes wrong becomes a notice.
    void open_trace(const std::filesystem::path& path) { opener_.open_trace(path); }
    void open_files(const std::vector<std::filesystem::path>& paths) { opener_.open(paths); }

    /// One file with the open traces, their notes, layout and selection, written beside the frames. @throws
    /// WorkspaceError
    void save_workspace(const std::filesystem::path& path) { workspace_.save(path); }
    void open_workspace(const std::filesystem::path& path) { workspace_.open(path); }

    const Settings& settings() const { return settings_.values(); }
    /// The views instead of the start cards, although no trace is open.
    void dismiss_start() { views_.dismiss_start(); }

    void apply_layout(const std::string& name) { views_.apply_layout(name); }
    OpenView& open_view(const ViewKind& kind) { return views_.open(kind); }
    /// Brings the first of its kind to the front, with the keyboard, or opens one; leaves the start cards.
    void show_view(const ViewKind& kind) { views_.show(kind); }
    /// "explore", "compare", "report"
    static const std::vector<std::string>& layout_names();

    nlohmann::json layout_state() const { return views_.state(); }
    /// Unknown kinds of view and damaged parts are left out.
    /// @param keep_views as OpenViews::restore has it
    void restore_layout(const nlohmann::json& state, bool keep_views = false) { views_.restore(state, keep_views); }

    Session& session() { return session_; }
    Tasks& tasks() { return tasks_; }
    Actions& actions() { return actions_; }
    EngineSession* engine() { return engine_.get(); }
    const std::vector<std::unique_ptr<OpenView>>& views() const { return views_.all(); }
    /// The view that has, or last had, the keyboard.
    OpenView* focused_view() const { return views_.focused(); }
    const std::vector<std::string>& notices() const { return notices_.all(); }
    /// What views have thrown while they were drawn, since the window opened.
    const std::vector<std::string>& view_failures() const { return views_.failures(); }
    /// Notices that say what went wrong, and views' failures.
    size_t n_errors() const { return notices_.n_errors() + views_.failures().size(); }

    void set_light(bool light) { appearance_.set_light(light); }
    void set_scale(float scale) { appearance_.set_scale(scale); }

    /// A message that a person should see; it goes away by itself and stays in the log.
    void notice(const std::string& text, bool is_error = false) { notices_.add(text, is_error); }

 private:
    std::unique_ptr<EngineSession> make_engine(const AppOptions& options);
    void choose_first_layout();
    void apply_asked_layout();
    void add_actions();
    void take_results();
    void show_first_answers();
    /// The form of Run fills the window no longer, where it does: there is something to be looked at.
    void end_form_alone();
    void take_input();
    bool is_start_shown() const;
    void draw_middle();
    void draw_views();
    void draw_start();
    void draw_quit_question();
    std::vector<StartCard> start_cards();
    void end_frame();
    /// What a person has chosen since the last frame goes into the settings; what other windows have added to them,
    /// from there.
    /// Between the session and the settings file.
    void share_settings();

    // What is below works with what is above it, and is gone before it.
    Window& window_;
    AppOptions options_;
    SettingsStore settings_;
    Notices notices_;
    FrameGuard guard_;
    Tasks tasks_;
    Session session_;
    Actions actions_;
    Appearance appearance_;
    std::unique_ptr<EngineSession> engine_;  ///< nullptr in a build without the engine
    OpenViews views_;
    ViewPicker picker_;
    ViewPicture picture_;
    UndoHistory undo_;
    TraceSidecars sidecars_;
    CurrentWorkspace workspace_;
    Autosave autosave_;
    FileOpener opener_;
    HelpPopups help_;
    QuitQuestion quit_question_;
    FileDialog dialog_;
    RenameDialog rename_;
    SavedLayouts saved_layouts_;
    RecentFiles recent_;
    bool are_answers_shown_ = false;          ///< those of the job under way were brought to the front
    bool had_traces_ = false;                 ///< in the last frame
    int trace_to_close_ = -1;                 ///< document that a view has asked to close
    const ViewKind* view_to_show_ = nullptr;  ///< that a view has asked for
    bool quit_ = false;
    ModelNames shared_names_;  ///< as session and settings had them after the last frame
};

}  // namespace kvscope::gui
