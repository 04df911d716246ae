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

/// The files beside the open traces: a person's annotations, and how each trace was looked at
/// (app/gui/session/annotations.h).
class TraceSidecars {
 public:
    /// @param keeps_views whether it is remembered how a trace was looked at; annotations always are
    /// @param warns_for   for how long a second attempt to leave counts as an answer to the warning
    TraceSidecars(Session& session, Notices& notices, bool keeps_views,
                  std::chrono::seconds warns_for = std::chrono::seconds(10))
        : session_(session), notices_(notices), keeps_views_(keeps_views), warns_for_(warns_for) {}

    /// A trace was opened: it is shown as it was looked at last.
    void take_in(Document& document);
    /// The same for each open trace that was not taken in yet: the engine opens some. @returns their paths
    std::vector<std::filesystem::path> take_in_new();
    /// The open traces stay as they are looked at now, which is how a workspace has set them.
    void take_in_as_shown();

    /// Annotations that have changed, at once: a window may end in other ways than by being closed. What cannot be
    /// saved is told once, and tried again after `retry_annotations`.
    void save_annotations();
    void retry_annotations() { annotations_wait_ = false; }
    void save_views();

    /// False, with a notice, where a person's annotations would be lost, unless that was said a moment ago.
    bool may_leave();

 private:
    /// How a trace is looked at, as session_state.h's view_state() has it.
    struct RememberedView {
        nlohmann::json by_default;  ///< as it opens where nothing is remembered
        nlohmann::json last;        ///< as it was when it was saved last, or opened
        nlohmann::json in_file;     ///< null: as by default
    };
    bool has_unsaved_annotations() const;

    Session& session_;
    Notices& notices_;
    bool keeps_views_;
    std::map<int, RememberedView> remembered_;  ///< by document
    std::string failure_;                       ///< told last
    bool annotations_wait_ = false;             ///< they could not be saved: not again in each frame
    std::chrono::seconds warns_for_;
    /// Until then closing again loses them. Not Dear ImGui's time, which stands still while the window sleeps.
    std::optional<std::chrono::steady_clock::time_point> warned_until_;
};

}  // namespace kvscope::gui
