#pragma once

#include <string>
#include <vector>

namespace kvscope::gui {

/// Asks whether the window is to close although a run, or a training, is under way.
class QuitQuestion {
 public:
    enum class Answer { none, quit, stay };

    /// Shown from the next frame on. @param what is under way: "demo.h5: 15 runs"
    void ask(std::string what);
    /// Whoever asks for the end once more while it is shown has answered it.
    bool is_shown() const { return is_shown_; }
    /// @param is_under_way what was asked about has not ended yet
    /// @param waiting      the jobs in the queue, which Quit discards; the question names each
    Answer draw(bool is_under_way, const std::vector<std::string>& waiting);

 private:
    std::string what_;
    bool is_wanted_ = false;
    bool is_shown_ = false;
};

}  // namespace kvscope::gui
