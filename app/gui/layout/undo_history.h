#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/layout/open_views.h"
#include "app/gui/session/session.h"
#include "common/json.h"

namespace kvscope::gui {

/// Undo and redo of the user's choices: selection, A and B, mark, prompts, hidden runs, run labels, pins, views and
/// places. Undo can reopen a closed trace. Opening a workspace clears the history. Changes by the app itself are not
/// steps, except when the app hides runs.
class UndoHistory {
 public:
    UndoHistory(Session& session, OpenViews& views) : session_(session), views_(views) {}

    [[nodiscard]] bool can_undo() const { return steps_.size() > 1; }
    [[nodiscard]] bool can_redo() const { return !undone_.empty(); }
    /// Undoes a step. Returns the names of the restored choices, e.g. "selection, A and B", or "" if there is no step.
    /// @throws the exceptions of Session::open if a closed trace cannot be reopened
    [[nodiscard]] std::string undo();
    [[nodiscard]] std::string redo();

    /// Starts a frame. Changes within a few frames after `has_input` count as changes by the user.
    void begin_frame(bool has_input);
    /// Adds a step if a change is complete. Returns whether a dropped view needs another frame to reach its place.
    [[nodiscard]] bool end_frame();
    /// Stores pending changes, including settings of views, as a step. Call before an action.
    void complete_step();

 private:
    struct Choices {
        Cursor cursor;
        std::optional<RunKey> a, b;
        bool pair_alone = false;
        std::string mark;
        std::map<int, std::filesystem::path> traces = {};           ///< paths of the open traces by document id
        std::map<int, int> prompts = {};                            ///< shown prompts by document id
        std::map<int, std::set<RunKey>> hidden = {};                ///< hidden runs by document id
        std::map<int, std::map<int, std::set<int64_t>>> pins = {};  ///< pinned tokens by document id and prompt
        std::map<int, std::vector<GivenLabel>> labels = {};         ///< run labels by document id
        std::vector<std::string> views = {};
        [[nodiscard]] bool operator==(const Choices&) const = default;
    };
    struct Step {
        Choices choices;
        std::string places;  ///< OpenViews::places()
        nlohmann::json layout;
    };
    void remember();
    [[nodiscard]] bool hides_runs(const Step& now) const;
    [[nodiscard]] Step present() const;  ///< current state without `layout`
    [[nodiscard]] std::string go_to(const Step& step);
    [[nodiscard]] static std::string difference(const Step& now, const Step& wanted);

    Session& session_;
    OpenViews& views_;
    std::vector<Step> steps_;  ///< oldest first; the last step is the current state
    std::vector<Step> undone_;
    int n_begun_ = 0;          ///< OpenViews::n_begun() when these steps were made
    int frames_of_input_ = 0;  ///< remaining frames in which changes count as changes by the user
    int frames_to_drop_ = 0;   ///< remaining frames until a dragged view is in its place
};

}  // namespace kvscope::gui
