#pragma once

#include <string>
#include <vector>

namespace kvscope::gui {

/// Asks whether to quit although a run or a training is in progress.
class QuitQuestion {
 public:
    enum class Answer { none, quit, stay };

    /// Shows the question. `what` names the job in progress, e.g. "demo.h5: 15 runs".
    void ask(std::string what);
    /// Whether the question is visible. A second request to quit then counts as a yes.
    bool is_shown() const { return is_shown_; }
    /// Draws the question with the queued jobs in `waiting`, which Quit discards.
    Answer draw(bool is_under_way, const std::vector<std::string>& waiting);

 private:
    std::string what_;
    bool is_wanted_ = false;
    bool is_shown_ = false;
};

}  // namespace kvscope::gui
