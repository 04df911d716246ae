#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/gui/session/session.h"
#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_views.h"
#include "app/gui/shell/trace_sidecars.h"

namespace kvscope::gui {

/// The open traces, their annotations, the layout and the selection as one file (app/gui/session/workspace.h).
class CurrentWorkspace {
 public:
    CurrentWorkspace(Session& session, TraceSidecars& sidecars, OpenViews& views, Notices& notices)
        : session_(session), sidecars_(sidecars), views_(views), notices_(notices) {}

    /// @throws WorkspaceError
    void save(const std::filesystem::path& path);
    /// Its traces are opened beside those that are open. What goes wrong becomes a notice.
    void open(const std::filesystem::path& path);

 private:
    Session& session_;
    TraceSidecars& sidecars_;
    OpenViews& views_;
    Notices& notices_;
    /// As it was opened or saved last, with what a later kvscope put into it.
    nlohmann::json state_ = nlohmann::json::object();
};

}  // namespace kvscope::gui
