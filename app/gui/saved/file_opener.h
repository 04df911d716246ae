#pragma once

#include <filesystem>
#include <vector>

#include "app/gui/layout/open_views.h"
#include "app/gui/saved/current_workspace.h"
#include "app/gui/saved/settings_store.h"
#include "app/gui/saved/trace_sidecars.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "app/gui/window/notices.h"

namespace kvscope::gui {

struct FileReceivers {
    Session& session;
    EngineSession* engine;  ///< nullptr in a build without the engine
    OpenViews& views;
    TraceSidecars& sidecars;
    CurrentWorkspace& workspace;
    SettingsStore& settings;
    Notices& notices;
};

/// Opens traces, workspaces, models and texts from the command line, dropped files and dialogs. Errors become notices.
class FileOpener {
 public:
    /// @param shows_what_is_there whether to maximize the view of task scores or spectra for a trace without prompts
    FileOpener(const FileReceivers& to, bool shows_what_is_there)
        : to_(to), shows_what_is_there_(shows_what_is_there) {}

    /// Opens files and folders of all supported kinds. With `at_once`, workspaces are opened without a background job.
    void open(const std::vector<std::filesystem::path>& paths, bool at_once = false);
    void open_trace(const std::filesystem::path& path);
    void open_model(const std::filesystem::path& path);

    /// Adds a loaded model to the recent files. Call once per frame.
    void remember_loaded_model();
    /// Shows a view or prompts that were requested before the layout was ready. Call once per frame.
    /// @param was_built whether this frame built the layout; the view is then shown in the next frame
    void show_what_waits(bool was_built);

 private:
    bool take_prompts(const std::vector<std::filesystem::path>& paths);

    FileReceivers to_;
    bool shows_what_is_there_;
    std::string wanted_view_;             ///< name of the view to show when the layout is ready; empty: none
    std::filesystem::path wanted_model_;  ///< model to add to the recent files when it is loaded
    std::vector<std::filesystem::path> wanted_prompts_;  ///< files for the Run view when the layout is ready
};

}  // namespace kvscope::gui
