#pragma once

#include <map>
#include <optional>
#include <vector>

struct ImGuiInputEvent;

namespace kvscope::gui {

/// Passes the system's input to Dear ImGui in its original order, split into groups that one pass can handle without
/// loss: a typed text, or a single click, wheel step or key press. Events of Dear ImGui's test engine stay unchanged.
class InputQueue {
 public:
    InputQueue();
    ~InputQueue();

    /// Assigns the time `now`, in seconds, to the events that arrived since the last call.
    void note_time(double now);
    [[nodiscard]] static bool is_waiting();
    [[nodiscard]] static bool exceeds_one_pass();
    /// Gives Dear ImGui only the next group of events, or none if `takes_input` is false. Call before NewFrame. Returns
    /// the time of the group's last event; nullopt if there is no event.
    [[nodiscard]] std::optional<double> begin_pass(bool takes_input);
    /// Puts the remaining events back into the queue. Call after NewFrame.
    void end_pass();
    /// Whether the last group may need further passes to take effect: a mouse button, or a key outside text fields.
    [[nodiscard]] bool needs_settling() const { return needs_settling_; }

 private:
    std::map<unsigned, double> times_;  ///< times of the waiting events by event number
    unsigned next_number_ = 0;
    double last_at_ = 0;
    std::vector<ImGuiInputEvent> kept_back_;
    bool needs_settling_ = false;
};

}  // namespace kvscope::gui
