#pragma once

#include <map>
#include <optional>
#include <vector>

struct ImGuiInputEvent;

namespace kvscope::gui {

/// Gives Dear ImGui the system's input in the order in which it came, in groups of what one pass through a frame takes
/// without losing or reordering any of it: typed text as a whole, and each click, turn of the wheel and key in a pass
/// of its own. What Dear ImGui's test engine adds is left as it is.
class InputQueue {
 public:
    InputQueue();
    ~InputQueue();

    /// What has come since the last call came now. @param now seconds
    void note_time(double now);
    static bool is_waiting();
    /// Whether more waits than one pass takes.
    static bool exceeds_one_pass();
    /// Before NewFrame: keeps back the events after the next group, or all events where `takes_input` is false.
    /// @returns when the last event came that the pass takes; nullopt: it takes none
    std::optional<double> begin_pass(bool takes_input);
    /// After NewFrame: puts the events that were kept back into the queue again.
    void end_pass();
    /// Whether what the last group did may take further passes: it was a button, or a key beside text fields.
    bool needs_settling() const { return needs_settling_; }

 private:
    std::map<unsigned, double> times_;  ///< by the events' numbers, of those that wait
    unsigned next_number_ = 0;
    double last_at_ = 0;
    std::vector<ImGuiInputEvent> kept_back_;
    bool needs_settling_ = false;
};

}  // namespace kvscope::gui
