#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/session/session.h"
#include "app/gui/shell/open_views.h"

namespace kvscope::gui {

/// Undo and redo of what a person has chosen and moved: selection, A and B, mark, prompts, hidden runs, runs' labels,
/// pins, and the views and their places. Undo opens a trace again that was closed. A workspace begins a new history.
/// What the program does by itself, and what a window's other size moves, is no step of its own, but for runs that it
/// hides.
class UndoHistory {
 public:
    UndoHistory(Session& session, OpenViews& views) : session_(session), views_(views) {}

    bool can_undo() const { return steps_.size() > 1; }
    bool can_redo() const { return !undone_.empty(); }
    /// @returns what came back, in a few words: "selection, A and B"; empty where there is nothing to undo
    /// @throws what Session::open throws where a closed trace cannot be opened again
    std::string undo();
    std::string redo();

    /// @param has_input in this frame: what changes now, and in the next few frames, is a person's doing
    void begin_frame(bool has_input);
    /// Remembers what has changed, once it is typed or dragged to its end.
    /// @returns whether the next frame is to follow at once: something was dropped and is not in its place yet
    bool end_frame();
    /// Before something happens: what was typed or moved until now is a step, and what was set in views comes back with
    /// it.
    void complete_step();

 private:
    /// What undo goes back through, besides places.
    struct Choices {
        Cursor cursor;
        std::optional<RunKey> a, b;
        bool pair_alone = false;
        std::string mark;
        std::map<int, std::filesystem::path> traces;           ///< that are open, by document
        std::map<int, int> prompts;                            ///< that are shown, by document
        std::map<int, std::set<RunKey>> hidden;                ///< by document
        std::map<int, std::map<int, std::set<int64_t>>> pins;  ///< by document and prompt
        std::map<int, std::vector<GivenLabel>> labels;         ///< by document
        std::vector<std::string> views;
        bool operator==(const Choices&) const = default;
    };
    struct Step {
        Choices choices;
        std::string places;  ///< splitters, tabs, floating views
        nlohmann::json layout;
    };
    void remember();
    /// Whether runs that were shown are hidden now: a step also where the program did it, so that undo takes back that
    /// alone.
    bool hides_runs(const Step& now) const;
    Step present() const;  ///< without `layout`
    /// @returns what is another now
    std::string go_to(const Step& step);
    static std::string difference(const Step& now, const Step& wanted);

    Session& session_;
    OpenViews& views_;
    std::vector<Step> steps_;  ///< the last is how things are
    std::vector<Step> undone_;
    int n_begun_ = 0;          ///< OpenViews::n_begun(), of these steps
    int frames_of_input_ = 0;  ///< left, after some, in which what changes is a person's doing
    int frames_to_drop_ = 0;   ///< left until what was dragged is in its place
};

}  // namespace kvscope::gui
