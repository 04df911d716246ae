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

/// What a file goes to.
struct FileReceivers {
    Session& session;
    EngineSession* engine;  ///< nullptr in a build without the engine
    OpenViews& views;
    TraceSidecars& sidecars;
    CurrentWorkspace& workspace;
    SettingsStore& settings;
    Notices& notices;
};

/// Opens what the command line names, what is dropped on the window, and what a dialog answers: traces, workspaces,
/// models, texts. What goes wrong becomes a notice.
class FileOpener {
 public:
    /// @param shows_what_is_there whether a trace without prompts brings its task scores, or its model's spectra, to
    /// the front: alone in the window where no other trace has prompts, until one with prompts is opened
    FileOpener(const FileReceivers& to, bool shows_what_is_there)
        : to_(to), shows_what_is_there_(shows_what_is_there) {}

    /// Each by what it is: its name's extension, or what is in the folder.
    /// @param at_once also a workspace, whose traces are else unpacked beside the frames first
    void open(const std::vector<std::filesystem::path>& paths, bool at_once = false);
    void open_trace(const std::filesystem::path& path);
    /// @param path empty: the default model
    void open_model(const std::filesystem::path& path);

    /// Once a frame: a model that has been loaded stands among the recent ones from now on.
    void remember_loaded_model();
    /// Once a frame: what waited for a layout. @param was_built a layout in this frame; a view waits for the next
    void show_what_waits(bool was_built);

 private:
    /// A text file for the Run view's prompt. @returns whether there is one that takes it
    bool take_text(const std::filesystem::path& path);

    FileReceivers to_;
    bool shows_what_is_there_;
    std::string wanted_view_;             ///< when the layout is there
    std::filesystem::path wanted_model_;  ///< remembered once it is loaded
    std::filesystem::path wanted_text_;   ///< for the Run view, once the layout is there
};

}  // namespace kvscope::gui
