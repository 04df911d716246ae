#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "app/gui/layout/open_views.h"
#include "app/gui/saved/trace_sidecars.h"
#include "app/gui/session/session.h"
#include "app/gui/session/workspace_file.h"
#include "app/gui/window/notices.h"
#include "common/json.h"

namespace kvscope::gui {

/// Saves and opens workspaces (session/workspace_file.h): open traces, annotations, layout and selection.
class CurrentWorkspace {
 public:
    /// Removes unpacked workspaces that a crashed instance has left on disk.
    CurrentWorkspace(Session& session, TraceSidecars& sidecars, OpenViews& views, Notices& notices);
    /// Removes the unpacked files, but not files that the user added.
    ~CurrentWorkspace();

    /// Saves the current state in a background job. The result becomes a notice. @throws WorkspaceError
    void save(const std::filesystem::path& path);
    /// Unpacks a workspace in a background job. Its traces replace the open ones, except traces that a run still
    /// writes. Errors become notices.
    void open(const std::filesystem::path& path);
    /// Opens a workspace before the first frame, without a background job. Traces that are already open stay open.
    void open_now(const std::filesystem::path& path);

 private:
    struct Unpacked {
        std::filesystem::path folder;
        nlohmann::json state;
        std::shared_ptr<FolderInUse> in_use;
    };
    [[nodiscard]] static Unpacked unpack(const std::filesystem::path& path);
    [[nodiscard]] std::vector<int> finished_traces() const;
    void close(const std::vector<int>& documents);
    void show(const std::filesystem::path& path, const Unpacked& unpacked);

    Session& session_;
    TraceSidecars& sidecars_;
    OpenViews& views_;
    Notices& notices_;
    std::vector<std::shared_ptr<FolderInUse>> unpacked_;  ///< folders of unpacked workspaces
    /// State that was opened or saved last, including unknown keys from a newer kvscope.
    nlohmann::json state_ = nlohmann::json::object();
};

}  // namespace kvscope::gui
