#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/session/session_state.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// Mouse and keyboard as the system's events tell of them, at their times.
class Script {
 public:
    struct Event {
        double at;
        std::function<void(ImGuiIO&)> add;
    };

    /// @param pause seconds between one event and the next
    explicit Script(double pause) : pause_(pause) {}
    const std::vector<Event>& events() const { return events_; }

    void wait(double seconds) { now_ += seconds; }
    void move(ImVec2 to) {
        add([to](ImGuiIO& io) { io.AddMousePosEvent(to.x, to.y); });
    }
    void click() {
        for (const bool is_down : {true, false})
            add([is_down](ImGuiIO& io) { io.AddMouseButtonEvent(ImGuiMouseButton_Left, is_down); });
    }
    /// A key and the character that it types; 0: none.
    void key(ImGuiKey key, unsigned typed = 0) {
        add([=](ImGuiIO& io) {
            io.AddKeyEvent(key, true);
            if (typed) io.AddInputCharacter(typed);
        });
        add([=](ImGuiIO& io) { io.AddKeyEvent(key, false); });
    }
    void ctrl(ImGuiKey pressed) {
        const auto hold = [](bool is_down) {
            return [is_down](ImGuiIO& io) {
                io.AddKeyEvent(ImGuiMod_Ctrl, is_down);
                io.AddKeyEvent(ImGuiKey_LeftCtrl, is_down);
            };
        };
        add(hold(true));
        add([=](ImGuiIO& io) { io.AddKeyEvent(pressed, true); });
        add(hold(false));  // before the key, as people do
        add([=](ImGuiIO& io) { io.AddKeyEvent(pressed, false); });
    }
    void type(std::string_view text) {
        for (const char c : text)
            key(c == ' ' ? ImGuiKey_Space : static_cast<ImGuiKey>(ImGuiKey_A + (c - 'a')),
                static_cast<unsigned char>(c));
    }

 private:
    void add(std::function<void(ImGuiIO&)> event) {
        events_.push_back({now_, std::move(event)});
        now_ += pause_;
    }
    double pause_;
    double now_ = 0;
    std::vector<Event> events_;
};

/// Draws at so many frames a second while the script's events come; the clock of the window is the script's.
void play(DrivenApp& driven, const Script& script, double frames_per_second) {
    Window& window = *test_window();
    const auto real = std::exchange(window.clock, nullptr);
    const double begin = real() + 1;
    double now = begin;
    window.clock = [&] { return now; };
    // The pointer of the machine that the test runs on is somewhere, too.
    ImGui::GetCurrentContext()->InputEventsQueue.clear();
    size_t next = 0;
    const auto& events = script.events();
    const double end = events.back().at + 3;
    for (double frame = 1 / frames_per_second; frame < end + 1 / frames_per_second; frame += 1 / frames_per_second) {
        for (; next < events.size() && events[next].at < frame; ++next) {
            now = begin + events[next].at;
            events[next].add(ImGui::GetIO());
            window.note_input_time();
        }
        now = begin + frame;
        do {
            window.draw_frame([&] { return driven.app().frame(); });
            driven.app().tasks().wait();
        } while (!ImGui::GetCurrentContext()->InputEventsQueue.empty());
    }
    window.clock = real;
}

ImVec2 center_of(const char* window) { return ImGui::FindWindowByName(window)->Rect().GetCenter(); }

/// In the middle of a field.
ImVec2 place_of(DrivenApp& driven, const std::string& field) {
    ImVec2 place;
    driven.drive([&](ImGuiTestContext& c) {
        c.MouseMove(field.c_str());
        place = ImGui::GetMousePos();
    });
    driven.settle();
    return place;
}

nlohmann::json state_of(DrivenApp& driven) {
    nlohmann::json state = session_state(driven.session(), {"trace"});
    state["views"] = nlohmann::json::array();
    for (const auto& open : driven.app().views()) {
        nlohmann::json saved;
        open->view->save(saved);
        state["views"].push_back({open->id(), saved});
    }
    state["search"] = driven.session().search;
    state["focused"] = driven.app().focused_view() ? driven.app().focused_view()->id() : "";
    state["prompt"] = driven.session().focus()->prompt;
    return state;
}

}  // namespace

TEST_CASE("what is typed after a click beside the field is no command") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const double frames_per_second = GENERATE(60.0, 2.0);
    DrivenApp driven(explore(sample));
    driven.settle();
    const nlohmann::json before = state_of(driven);
    const auto views = driven.app().views().size();
    Script script(0.05);
    script.move(place_of(driven, DrivenApp::window_of("Prompt###prompt") + "/##prompt mark"));
    script.click();
    script.type("w");
    script.move(center_of("Prompt###prompt-1"));
    script.click();
    script.type("omfvdwomfvd");
    script.key(ImGuiKey_2, '2');
    script.key(ImGuiKey_Slash, '?');
    play(driven, script, frames_per_second);
    CHECK(driven.session().mark == "w");
    CHECK(driven.app().views().size() == views);
    CHECK(state_of(driven)["traces"] == before["traces"]);
    CHECK(!ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel));
    Script later(0.05);
    later.wait(1.5);
    later.key(ImGuiKey_2, '2');
    play(driven, later, frames_per_second);
    CHECK(!driven.session().is_visible(driven.session().all_runs()[1]));
}

TEST_CASE("a key that types is a command where a view has the keyboard, and nowhere else") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto is_shown = [&] { return driven.session().is_visible(driven.session().all_runs()[1]); };
    driven.drive([&](ImGuiTestContext& c) {
        ImGui::SetWindowFocus(nullptr);
        c.Yield(2);
        c.KeyPress(ImGuiKey_2);
        c.Yield(2);
    });
    CHECK(is_shown());
    driven.drive([&](ImGuiTestContext& c) {
        c.WindowFocus(DrivenApp::window_of("Prompt###prompt").c_str());
        c.KeyPress(ImGuiKey_2);
        c.Yield(2);
    });
    CHECK(!is_shown());
}

TEST_CASE("a field shows Arabic from right to left and emoji, and the mouse puts the caret where the text is") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "prompt"));
    driven.settle();
    const std::string arabic = "مرحبا بالعالم";
    driven.session().mark = arabic;
    ImRect field;
    driven.drive([&](ImGuiTestContext& c) {
        const auto item = c.ItemInfo("//prompt-1/##prompt mark");
        field = item.RectFull;
        // At the left end of a text that begins at the right: the caret goes behind its last letter.
        c.MouseMoveToPos({field.Min.x + ImGui::GetStyle().FramePadding.x + 1, field.GetCenter().y});
        c.MouseClick();
        c.Yield(2);
        ImGuiInputTextState* text = ImGui::GetInputTextState(item.ID);
        IM_CHECK(text != nullptr);
        IM_CHECK_EQ(text->GetCursorPos(), static_cast<int>(arabic.size()));
        c.KeyChars("!");
        c.Yield(2);
    });
    CHECK(driven.session().mark == arabic + "!");
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
        c.KeyChars("a");
        c.KeyPress(ImGuiKey_Backspace);
        c.KeyChars("😀");
        c.Yield(2);
    });
    CHECK(driven.session().mark == "😀");
    const Screenshot shot = driven.picture();
    int n_yellow = 0;  // Noto's smile; without its font the box is grey
    for (float y = field.Min.y; y < field.Max.y; ++y) {
        for (float x = field.Min.x; x < field.Max.x; ++x) {
            const uint8_t* rgb =
                &shot.rgb[(static_cast<size_t>(y) * static_cast<size_t>(shot.width) + static_cast<size_t>(x)) * 3];
            n_yellow += rgb[0] > 180 && rgb[1] > 120 && rgb[2] < 100;
        }
    }
    if (driven.app().notices().empty()) CHECK(n_yellow > 20);
}

}  // namespace kvscope::gui::testing
