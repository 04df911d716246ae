#pragma once

#include <filesystem>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "app/gui/shell/current_workspace.h"
#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_views.h"
#include "app/gui/shell/settings_store.h"
#include "app/gui/shell/trace_sidecars.h"

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

/// Opens files from the command line, from a drop on the app's window and from dialogs: traces, workspaces, models,
/// texts. Errors become notices.
class FileOpener {
 public:
    /// With `shows_what_is_there`, a trace without prompts shows its task scores or spectra in the whole app's window
    /// until a trace with prompts is open.
    FileOpener(const FileReceivers& to, bool shows_what_is_there)
        : to_(to), shows_what_is_there_(shows_what_is_there) {}

    /// Opens each file by its extension or a folder's contents. `at_once` opens workspaces without a background job.
    void open(const std::vector<std::filesystem::path>& paths, bool at_once = false);
    void open_trace(const std::filesystem::path& path);
    /// Loads a model. An empty path means the default model.
    void open_model(const std::filesystem::path& path);

    /// Adds a model to the recent files once it is loaded. Call once per frame.
    void remember_loaded_model();
    /// Call once per frame. Shows a view that waits for the layout, unless the layout was built in this frame.
    void show_what_waits(bool was_built);

 private:
    /// Gives a text file to the Run view as its prompt. Returns whether a view accepted it.
    bool take_text(const std::filesystem::path& path);

    FileReceivers to_;
    bool shows_what_is_there_;
    std::string wanted_view_;             ///< view to show when the layout is ready; empty: none
    std::filesystem::path wanted_model_;  ///< model to add to the recent files when it is loaded
    std::filesystem::path wanted_text_;   ///< text file for the Run view when the layout is ready
};

}  // namespace kvscope::gui
