#pragma once

#include <map>
#include <optional>
#include <vector>

struct ImGuiInputEvent;

namespace kvscope::gui {

/// Passes the system's input to Dear ImGui in its original order and splits it into groups. A group holds the events
/// that one pass can handle without loss: a typed text, or a single click, wheel step or key press. Events from Dear
/// ImGui's test engine are not changed.
class InputQueue {
 public:
    InputQueue();
    ~InputQueue();

    /// Assigns the time `now`, in seconds, to the events that arrived since the last call.
    void note_time(double now);
    static bool is_waiting();
    /// Whether the waiting events need more than one pass.
    static bool exceeds_one_pass();
    /// Keeps the events after the next group out of Dear ImGui, or all events if `takes_input` is false. Call before
    /// NewFrame. Returns the time of the last event in this pass; nullopt: no event.
    std::optional<double> begin_pass(bool takes_input);
    /// Puts the remaining events back into the queue. Call after NewFrame.
    void end_pass();
    /// Whether the last group may need more passes to take effect: a mouse button, or a key outside text fields.
    bool needs_settling() const { return needs_settling_; }

 private:
    std::map<unsigned, double> times_;  ///< times of the waiting events by event number
    unsigned next_number_ = 0;
    double last_at_ = 0;
    std::vector<ImGuiInputEvent> kept_back_;
    bool needs_settling_ = false;
};

}  // namespace kvscope::gui
