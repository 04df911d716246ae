#pragma once

#include <string>
#include <vector>

namespace kvscope::gui {

/// Asks whether to quit although a run or a training is in progress.
class QuitQuestion {
 public:
    enum class Answer { none, quit, stay };

    void ask(std::string what);
    /// Whether the question is visible. A second request to quit then counts as the answer Quit.
    [[nodiscard]] bool is_shown() const { return is_shown_; }
    /// Draws the question and lists the queued jobs in `waiting`, which quitting discards.
    [[nodiscard]] Answer draw(bool is_under_way, const std::vector<std::string>& waiting);

 private:
    std::string what_;
    bool is_wanted_ = false;
    bool is_shown_ = false;
};

}  // namespace kvscope::gui
