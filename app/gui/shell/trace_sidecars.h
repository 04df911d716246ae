#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/gui/session/session.h"
#include "app/gui/shell/notices.h"

namespace kvscope::gui {

/// Files next to the open traces: the user's annotations and how each trace is viewed (app/gui/session/annotations.h).
class TraceSidecars {
 public:
    /// @param keeps_views whether the view state of each trace is saved; annotations are always saved
    /// @param warns_for time in which a second attempt to quit overrides the warning
    TraceSidecars(Session& session, Notices& notices, bool keeps_views,
                  std::chrono::seconds warns_for = std::chrono::seconds(10))
        : session_(session), notices_(notices), keeps_views_(keeps_views), warns_for_(warns_for) {}

    /// Restores the saved view state of an opened trace.
    void take_in(Document& document);
    /// Does the same for all newly opened traces, e.g. those that the engine opened. Returns their paths.
    std::vector<std::filesystem::path> take_in_new();
    /// Keeps the current view state of the open traces, because a workspace has set it.
    void take_in_as_shown();

    /// Writes changed annotations now. Reports an error once and then waits for retry_annotations().
    void save_annotations();
    void retry_annotations() { annotations_wait_ = false; }
    void save_views();

    /// Returns false, with a notice, if annotations would be lost. Returns true if the user was warned shortly before.
    bool may_leave();

 private:
    /// View state of a trace in the format of view_state() in session_state.h.
    struct RememberedView {
        nlohmann::json by_default;  ///< view state of a newly opened trace
        nlohmann::json last;        ///< view state when last saved or opened
        nlohmann::json in_file;     ///< view state in the file; null: the default
    };
    bool has_unsaved_annotations() const;

    Session& session_;
    Notices& notices_;
    bool keeps_views_;
    std::map<int, RememberedView> remembered_;  ///< by document id
    std::string failure_;                       ///< last reported error
    bool annotations_wait_ = false;             ///< whether saving failed, so that it is not retried in every frame
    std::chrono::seconds warns_for_;
    /// Until this time, closing again discards the annotations. Dear ImGui's clock is not used because it stops while
    /// the app sleeps.
    std::optional<std::chrono::steady_clock::time_point> warned_until_;
};

}  // namespace kvscope::gui
