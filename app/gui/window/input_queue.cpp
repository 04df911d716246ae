#include "app/gui/window/input_queue.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

namespace kvscope::gui {
namespace {

bool is_text_field_active() {
    const ImGuiContext& now = *ImGui::GetCurrentContext();
    return now.ActiveId != 0 && now.ActiveId == now.InputTextState.ID;
}

bool is_modifier(ImGuiKey key) {
    return (key & ImGuiMod_Mask_) != 0 || (key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper);
}

bool is_shift(ImGuiKey key) { return key == ImGuiMod_Shift || key == ImGuiKey_LeftShift || key == ImGuiKey_RightShift; }

class Group {
 public:
    /// Adds the event if the same pass can handle it. Returns whether it was added.
    bool takes(const ImGuiInputEvent& event) {
        const Kind kind = kind_of(event);
        if (kind == Kind::none) return true;
        const bool is_key = event.Type == ImGuiInputEventType_Key;
        const bool has_changed = is_key && std::ranges::find(changed_, event.Key.Key) != changed_.end();
        const bool fits = kind_ == Kind::none || (kind_ == Kind::modifier && kind == Kind::key) ||
                          (kind_ == Kind::key && kind == Kind::text) ||
                          (kind_ == kind && kind != Kind::button && kind != Kind::key);
        if (!fits || (kind == Kind::modifier && has_changed)) return false;
        if (kind == Kind::wheel) {
            turned_ += std::max(std::abs(event.MouseWheel.WheelX), std::abs(event.MouseWheel.WheelY));
            if (kind_ == Kind::wheel && turned_ > one_notch) return false;
        }
        kind_ = kind;
        if (is_key) changed_.push_back(event.Key.Key);
        return true;
    }
    bool needs_settling() const {
        return kind_ == Kind::button || kind_ == Kind::modifier || kind_ == Kind::key || kind_ == Kind::text;
    }

 private:
    enum class Kind { none, move, button, wheel, modifier, key, text, typed };

    Kind kind_of(const ImGuiInputEvent& event) const {
        switch (event.Type) {
            case ImGuiInputEventType_MousePos:
                return Kind::move;
            case ImGuiInputEventType_MouseButton:
                return Kind::button;
            case ImGuiInputEventType_MouseWheel:
                return Kind::wheel;
            case ImGuiInputEventType_Text:
                return is_typing_ && kind_ != Kind::key ? Kind::typed : Kind::text;
            case ImGuiInputEventType_Key:
                if (types_text(event.Key.Key)) return Kind::typed;
                return is_modifier(event.Key.Key) ? Kind::modifier : Kind::key;
            default:
                return Kind::none;
        }
    }
    bool types_text(ImGuiKey key) const {
        const ImGuiIO& io = ImGui::GetIO();
        if (!is_typing_ || kind_ == Kind::modifier || io.KeyCtrl || io.KeyAlt || io.KeySuper) return false;
        if (is_modifier(key)) return is_shift(key);
        // Dear ImGui counts Tab as a character key, but here Tab moves to the next item.
        return key != ImGuiKey_Tab && ImGui::GetCurrentContext()->KeysMayBeCharInput.TestBit(key);
    }

    /// Maximum zoom of a plot in one pass, however far the wheel was turned.
    static constexpr float one_notch = 1;

    const bool is_typing_ = is_text_field_active();
    float turned_ = 0;  ///< wheel movement in notches
    Kind kind_ = Kind::none;
    std::vector<ImGuiKey> changed_;
};

}  // namespace

InputQueue::InputQueue() = default;
InputQueue::~InputQueue() = default;

void InputQueue::note_time(double now) {
    for (const ImGuiInputEvent& event : ImGui::GetCurrentContext()->InputEventsQueue) {
        if (event.EventId < next_number_) continue;
        times_[event.EventId] = last_at_ = now;
        next_number_ = event.EventId + 1;
    }
}

namespace {

struct NextGroup {
    int n_events = 0;
    bool needs_settling = false;
};

/// Returns an empty group if events of the test engine are waiting.
NextGroup next_group() {
    const auto& queue = ImGui::GetCurrentContext()->InputEventsQueue;
    if (std::ranges::any_of(queue, [](const auto& event) { return event.AddedByTestEngine; })) return {};
    Group group;
    int n = 0;
    while (n < queue.Size && group.takes(queue[n])) ++n;
    return {n, group.needs_settling()};
}

}  // namespace

bool InputQueue::is_waiting() { return next_group().n_events > 0; }

bool InputQueue::exceeds_one_pass() {
    const int n = next_group().n_events;
    return n > 0 && n < ImGui::GetCurrentContext()->InputEventsQueue.Size;
}

std::optional<double> InputQueue::begin_pass(bool takes_input) {
    auto& queue = ImGui::GetCurrentContext()->InputEventsQueue;
    const NextGroup next = takes_input ? next_group() : NextGroup{};
    // The test engine needs Dear ImGui to defer events that do not fit into a frame.
    ImGui::GetIO().ConfigInputTrickleEventQueue = next.n_events == 0;
    needs_settling_ = next.needs_settling;
    if (takes_input && next.n_events == 0) return std::nullopt;
    kept_back_.assign(queue.begin() + next.n_events, queue.end());
    queue.resize(next.n_events);
    if (next.n_events == 0) return std::nullopt;
    const unsigned last = queue.back().EventId;
    const auto found = times_.find(last);
    const double at = found == times_.end() ? last_at_ : found->second;
    times_.erase(times_.begin(), times_.upper_bound(last));
    return at;
}

void InputQueue::end_pass() {
    auto& queue = ImGui::GetCurrentContext()->InputEventsQueue;
    for (const ImGuiInputEvent& event : kept_back_) queue.push_back(event);
    kept_back_.clear();
}

}  // namespace kvscope::gui
