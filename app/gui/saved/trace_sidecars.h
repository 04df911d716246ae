#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "app/gui/session/session.h"
#include "app/gui/window/notices.h"
#include "common/json.h"

namespace kvscope::gui {

/// Reads and writes the files next to the open traces: annotations and view states (session/annotations.h).
class TraceSidecars {
 public:
    /// @param keeps_views whether the view state of each trace is saved; annotations are always saved
    /// @param warns_for time during which a second attempt to quit discards unsaved annotations
    TraceSidecars(Session& session, Notices& notices, bool keeps_views,
                  std::chrono::seconds warns_for = std::chrono::seconds(10))
        : session_(session), notices_(notices), keeps_views_(keeps_views), warns_for_(warns_for) {}

    void take_in(Document& document);
    /// Calls take_in() for all newly opened traces, e.g. traces from the engine. Returns their paths.
    [[nodiscard]] std::vector<std::filesystem::path> take_in_new();
    /// Treats the view states that a workspace has just set as saved, so that save_views() does not write them.
    void take_in_as_shown();

    /// Writes changed annotations. After an error, which is reported once, waits for retry_annotations().
    void save_annotations();
    void retry_annotations() { annotations_wait_ = false; }
    void save_views();

    /// Returns false and shows a notice if annotations would be lost and no such notice was shown shortly before.
    [[nodiscard]] bool may_leave();

 private:
    /// View state of a trace in the format of trace_display_state() in session_state.h.
    struct RememberedView {
        nlohmann::json by_default;  ///< view state of a newly opened trace
        nlohmann::json last;        ///< view state when last saved or opened
        nlohmann::json in_file;     ///< view state in the file; null: the default
    };
    [[nodiscard]] bool has_unsaved_annotations() const;

    Session& session_;
    Notices& notices_;
    bool keeps_views_;
    std::map<int, RememberedView> remembered_;  ///< view states by document id
    std::string failure_;                       ///< last reported error
    bool annotations_wait_ = false;             ///< whether saving failed; prevents a retry in every frame
    std::chrono::seconds warns_for_;
    /// An attempt to close before this time discards the annotations. This clock also runs while the app sleeps.
    std::optional<std::chrono::steady_clock::time_point> warned_until_;
};

}  // namespace kvscope::gui
