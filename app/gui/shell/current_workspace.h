#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/gui/session/session.h"
#include "app/gui/session/workspace_file.h"
#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_views.h"
#include "app/gui/shell/trace_sidecars.h"

namespace kvscope::gui {

/// The open traces, their annotations, the layout and the selection as one file (app/gui/session/workspace_file.h).
class CurrentWorkspace {
 public:
    /// Removes what opened workspaces of a program that crashed have left.
    CurrentWorkspace(Session& session, TraceSidecars& sidecars, OpenViews& views, Notices& notices);
    /// What was unpacked is removed, but for what was written beside it.
    ~CurrentWorkspace();

    /// As everything is now; the traces are copied beside the frames. A notice says when it is written, or why not.
    /// @throws WorkspaceError where it cannot be begun
    void save(const std::filesystem::path& path);
    /// Its traces take the place of those that are open now when they are unpacked, which a worker does. A trace that a
    /// run writes stays open. What goes wrong becomes a notice.
    void open(const std::filesystem::path& path);
    /// Its traces are opened at once beside those that the command line names, before there is a frame that could wait.
    void open_now(const std::filesystem::path& path);

 private:
    struct Unpacked {
        std::filesystem::path folder;
        nlohmann::json state;
        std::shared_ptr<FolderInUse> in_use;
    };
    /// On any thread. @throws WorkspaceError
    static Unpacked unpack(const std::filesystem::path& path);
    /// Ids of the open traces but those that runs write.
    std::vector<int> finished_traces() const;
    void close(const std::vector<int>& documents);
    void show(const std::filesystem::path& path, const Unpacked& unpacked);

    Session& session_;
    TraceSidecars& sidecars_;
    OpenViews& views_;
    Notices& notices_;
    std::vector<std::shared_ptr<FolderInUse>> unpacked_;  ///< whose traces are, or were, open
    /// As it was opened or saved last, with what a later kvscope put into it.
    nlohmann::json state_ = nlohmann::json::object();
};

}  // namespace kvscope::gui
