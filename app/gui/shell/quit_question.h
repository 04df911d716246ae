#pragma once

#include <cstddef>
#include <string>

namespace kvscope::gui {

/// Asks whether the window is to close although a run, or a training, is under way.
class QuitQuestion {
 public:
    enum class Answer { none, quit, stay };

    /// Shown from the next frame on. @param what is under way: "demo.h5: 15 runs" @param n_waiting jobs in the queue
    void ask(std::string what, size_t n_waiting);
    /// Whoever asks for the end once more while it is shown has answered it.
    bool is_shown() const { return is_shown_; }
    /// @param is_under_way what was asked about has not ended yet
    Answer draw(bool is_under_way);

 private:
    std::string what_;
    size_t n_waiting_ = 0;
    bool is_wanted_ = false;
    bool is_shown_ = false;
};

}  // namespace kvscope::gui
