#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/layout/open_views.h"
#include "app/gui/layout/undo_history.h"
#include "app/gui/layout/view_picker.h"
#include "app/gui/layout/view_picture.h"
#include "app/gui/saved/autosave.h"
#include "app/gui/saved/current_workspace.h"
#include "app/gui/saved/file_opener.h"
#include "app/gui/saved/recent_files.h"
#include "app/gui/saved/saved_layouts.h"
#include "app/gui/saved/settings_store.h"
#include "app/gui/saved/trace_sidecars.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "app/gui/session/tasks.h"
#include "app/gui/shell/help_popups.h"
#include "app/gui/shell/quit_question.h"
#include "app/gui/shell/start_cards.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/rename_run_dialog.h"
#include "app/gui/window/appearance.h"
#include "app/gui/window/frame_guard.h"
#include "app/gui/window/notices.h"
#include "app/gui/window/window.h"
#include "common/json.h"

namespace kvscope::gui {

struct AppOptions {
    std::vector<std::filesystem::path> traces;
    std::string mark;                   ///< text to outline in every view
    std::string select;                 ///< selection in the syntax of parse_selection; empty: none
    std::string layout;                 ///< explore | compare | report; empty: the layout of the last session
    nlohmann::json saved_layout;        ///< an entry of Settings::layouts, used instead of `layout`; null: none
    std::string view;                   ///< name of a view that fills the app's window; empty: none
    bool remember = true;               ///< whether the user's settings are read and written
    bool run_demo = false;              ///< whether the demo run starts immediately; needs a build with the engine
    int n_threads = 0;                  ///< CPU threads for models; 0: one per core
    std::function<void()> before_step;  ///< passed to make_engine_session; tests use it to pause a job
    std::optional<bool> use_template;   ///< initial value in the Run view; nullopt: the last value
    std::optional<bool> parse_special;  ///< initial value in the Run view; nullopt: the last value
};

/// The graphical program. Owns its components and calls their draw functions in order, once per frame.
class App {
 public:
    App(Window& window, AppOptions options);
    ~App();

    /// Draws one frame. Returns false when the app's window should close.
    bool frame();
    /// Called instead of frame() while the app's window is hidden. Receives the results of the engine and of jobs.
    void unseen_frame();
    /// Saves the settings before the app closes. May ask the user a question and return false, unless `is_ordered`.
    [[nodiscard]] bool may_close(bool is_ordered = false);

    void open_trace(const std::filesystem::path& path) { opener_.open_trace(path); }
    void open_files(const std::vector<std::filesystem::path>& paths) { opener_.open(paths); }

    /// Saves a workspace in a background job. @throws WorkspaceError
    void save_workspace(const std::filesystem::path& path) { workspace_.save(path); }
    void open_workspace(const std::filesystem::path& path) { workspace_.open(path); }

    [[nodiscard]] const Settings& settings() const { return settings_.values(); }
    void dismiss_start() { views_.dismiss_start(); }

    void apply_layout(const std::string& name) { views_.apply_layout(name); }
    OpenView& open_view(const ViewKind& kind) { return views_.open(kind); }
    void show_view(const ViewKind& kind) { views_.show(kind); }
    [[nodiscard]] static const std::vector<std::string>& layout_names();

    [[nodiscard]] nlohmann::json layout_state() const { return views_.state(); }
    void restore_layout(const nlohmann::json& state, bool keep_views = false) { views_.restore(state, keep_views); }

    [[nodiscard]] Session& session() { return session_; }
    [[nodiscard]] Tasks& tasks() { return tasks_; }
    [[nodiscard]] Actions& actions() { return actions_; }
    [[nodiscard]] EngineSession* engine() { return engine_.get(); }
    [[nodiscard]] const std::vector<std::unique_ptr<OpenView>>& views() const { return views_.all(); }
    [[nodiscard]] OpenView* focused_view() const { return views_.focused(); }
    [[nodiscard]] const std::vector<std::string>& notices() const { return notices_.all(); }
    [[nodiscard]] const std::vector<std::string>& view_failures() const { return views_.failures(); }
    [[nodiscard]] size_t n_errors() const { return notices_.n_errors() + views_.failures().size(); }

    void set_light(bool light) { appearance_.set_light(light); }
    void set_scale(float scale) { appearance_.set_scale(scale); }

    void notice(const std::string& text, bool is_error = false) { notices_.add(text, is_error); }

 private:
    [[nodiscard]] std::unique_ptr<EngineSession> make_engine(const AppOptions& options);
    void choose_first_layout();
    void apply_asked_layout();
    void add_actions();
    void take_results();
    void show_first_answers();
    void show_wanted_view();
    void end_form_alone();
    void take_input();
    [[nodiscard]] bool is_start_shown() const;
    void draw_middle();
    void draw_views();
    void draw_start();
    void draw_quit_question();
    [[nodiscard]] std::vector<StartCard> start_cards();
    void end_frame();
    void share_settings();

    // Each member may refer to the members above it, so the order of declaration matters.
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
    bool are_answers_shown_ = false;          ///< whether Answers was brought to the front for the current job
    bool had_traces_ = false;                 ///< whether a trace was open in the last frame
    int trace_to_close_ = -1;                 ///< id of the document that a view asked to close; −1: none
    const ViewKind* view_to_show_ = nullptr;  ///< kind of view to show, as requested by another view; nullptr: none
    bool quit_ = false;
    ModelNames shared_names_;  ///< model names after the last frame
};

}  // namespace kvscope::gui
