#include <imgui_impl_glfw.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/session/session_state.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// Mouse and keyboard input as events with times.
class Script {
 public:
    struct Event {
        double at;  ///< seconds
        std::function<void(ImGuiIO&)> happens;
    };

    void wait(double seconds) { now_ += seconds; }
    /// Presses a key that types a character, or a shortcut.
    void key(ImGuiKeyChord chord, ImWchar32 character = 0) {
        const auto modifiers = static_cast<ImGuiKey>(chord & ImGuiMod_Mask_);
        const auto key = static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_);
        if (modifiers) add(0.02, [=](ImGuiIO& io) { io.AddKeyEvent(modifiers, true); });
        add(0.02, [=](ImGuiIO& io) {
            io.AddKeyEvent(key, true);
            if (character) io.AddInputCharacter(character);
        });
        add(0.02, [=](ImGuiIO& io) { io.AddKeyEvent(key, false); });
        if (modifiers) add(0.02, [=](ImGuiIO& io) { io.AddKeyEvent(modifiers, false); });
    }
    /// Types lower-case letters, digits and some signs.
    void type(const std::string& text) {
        for (const char c : text) {
            const ImGuiKey key = c >= 'a' && c <= 'z'   ? static_cast<ImGuiKey>(ImGuiKey_A + (c - 'a'))
                                 : c >= '0' && c <= '9' ? static_cast<ImGuiKey>(ImGuiKey_0 + (c - '0'))
                                 : c == '.'             ? ImGuiKey_Period
                                 : c == ','             ? ImGuiKey_Comma
                                                        : ImGuiKey_Space;
            this->key(key, static_cast<ImWchar32>(c));
        }
    }
    void move(ImVec2 to) {
        add(0.05, [=](ImGuiIO& io) { io.AddMousePosEvent(to.x, to.y); });
    }
    void click(ImVec2 at, int times = 1, double seconds_between = 0.1) {
        move(at);
        for (int i = 0; i < times; ++i) {
            if (i > 0) wait(seconds_between);
            add(0.01, [](ImGuiIO& io) { io.AddMouseButtonEvent(0, true); });
            add(0.03, [](ImGuiIO& io) { io.AddMouseButtonEvent(0, false); });
        }
    }
    void turn_wheel(ImVec2 at, float by, int times) {
        move(at);
        for (int i = 0; i < times; ++i) add(0.05, [=](ImGuiIO& io) { io.AddMouseWheelEvent(0, by); });
    }
    const std::vector<Event>& events() const { return events_; }

 private:
    void add(double after, std::function<void(ImGuiIO&)> happens) {
        now_ += after;
        events_.push_back({now_, std::move(happens)});
    }
    double now_ = 0;
    std::vector<Event> events_;
};

/// Positions that the script clicks.
struct Places {
    ImVec2 mark, search, beside, map;
};

Places places_in(DrivenApp& driven) {
    Places places;
    driven.drive([&](ImGuiTestContext& c) {
        const auto right_end = [&](const char* item) {
            const ImRect rect = c.ItemInfo(item).RectFull;
            return ImVec2{rect.Max.x - 10, rect.GetCenter().y};
        };
        places.mark = right_end("//prompt-1/##prompt mark");
        places.search = right_end("//prompt-1/##prompt search");
        const ImRect prompt = c.WindowInfo("//prompt-1").Window->Rect();
        places.beside = {prompt.Max.x - 30, prompt.Max.y - 20};
        places.map = c.WindowInfo("//retention-1").Window->Rect().GetCenter();
    });
    return places;
}

Script script_at(const Places& at) {
    Script script;
    for (int round = 0; round < 2; ++round) {
        // Typed text, followed immediately by other input.
        script.key(ImGuiMod_Ctrl | ImGuiKey_F);
        script.type("w1");
        script.key(ImGuiKey_Enter);
        script.key(ImGuiKey_Tab);
        script.type("w2 ");
        script.click(at.mark, 2, 0.05);
        script.type(round == 0 ? "w12" : "w5");
        script.key(ImGuiMod_Ctrl | ImGuiKey_K);
        script.type("show coverage");
        script.key(ImGuiKey_Enter);
        script.type(".");  // not an action, because text was just typed
        script.wait(1.3);
        // Right after a click outside a field, typed keys are not actions. Later they are.
        script.click(at.mark);
        script.type("0");
        script.click(at.beside);
        script.type("omfvd2");
        script.wait(1.3);
        script.type(".");
        script.type(round == 0 ? "." : ".2");
        script.wait(0.4);
        // Slow clicks, then a double click and the wheel.
        script.click(at.map, 2, 0.4);
        script.turn_wheel(at.map, 1, 3);
        script.wait(0.5);
        if (round == 1) script.click(at.map, 2, 0.08);
        script.turn_wheel(at.map, -1, 1);
        // The effect of undo after the double click depends on when the layer's heads have been read.
        if (round == 0) script.key(ImGuiMod_Ctrl | ImGuiKey_Z);
        script.type(",");
        script.wait(0.4);
    }
    return script;
}

/// State that a script leaves in an app with this number of frames per second.
struct Left {
    nlohmann::json session, layout;
    std::string search, mark;
    size_t n_events = 0;
};

Left play(double frames_per_second) {
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const Script script = script_at(places_in(driven));
    ImGui_ImplGlfw_CursorEnterCallback(glfwGetCurrentContext(), 1);  // keeps the real mouse away

    Window& window = *test_window();
    const auto real_clock = window.clock;
    const double begin = real_clock();
    double now = begin;
    window.clock = [&] { return now; };
    constexpr int n_after_input = 6;  // frames drawn before the app sleeps
    int left_to_draw = 0;
    size_t next = 0;
    const auto& events = script.events();
    for (int frame = 1; next < events.size() || left_to_draw > 0; ++frame) {
        const double end = begin + frame / frames_per_second;
        for (; next < events.size() && begin + events[next].at <= end; ++next) {
            now = begin + events[next].at;
            events[next].happens(ImGui::GetIO());
            window.note_input_time();
            left_to_draw = n_after_input;
        }
        now = end;
        if (left_to_draw-- <= 0) continue;
        window.draw_frame([&] {
            const bool goes_on = driven.app().frame();
            driven.app().tasks().wait();  // makes the result independent of the speed of jobs
            return goes_on;
        });
    }
    window.clock = real_clock;
    ImGui_ImplGlfw_CursorEnterCallback(glfwGetCurrentContext(), 0);
    driven.settle();
    const Session& session = driven.session();
    nlohmann::json state = session_state(session, {"sample.h5"});
    state["selection"].erase("kv_head");  // set by the double click only if a job has read the heads by then
    return {std::move(state), driven.app().layout_state(), session.search, session.mark, events.size()};
}

}  // namespace

TEST_CASE("a script of events ends in the same state at 2 frames a second as at 60") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    play(60);  // the first layout of a program is measured before its bars exist
    const Left fast = play(60);
    REQUIRE(fast.n_events >= 200);
    // The script typed, opened a view, hid a run and opened a layer's heads.
    CHECK(fast.search == "w1");
    CHECK(fast.mark == "w5 0");
    CHECK(fast.layout.dump().find("coverage") != std::string::npos);
    CHECK(fast.session["traces"][0]["hidden"].size() == 1);
    CHECK(fast.session["token_axis"] != nlohmann::json({0.0, 0.0}));
    const auto layer = [](const Left& left) {
        for (const auto& view : left.layout["views"])
            if (view["kind"] == "retention") return view["state"]["layer"].get<int>();
        return -1;
    };
    CHECK(layer(fast) >= 0);
    INFO(fast.session.dump(1));
    INFO(fast.layout.dump(1));
    const Left slow = play(2);
    CHECK(slow.search == fast.search);
    CHECK(slow.mark == fast.mark);
    CHECK(slow.session == fast.session);
    CHECK(slow.layout == fast.layout);
}

TEST_CASE("slow clicks after an interrupted frame are not a double click") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    Window& window = *test_window();
    const auto real_clock = window.clock;
    const double begin = real_clock();
    bool is_double_click = false;
    const std::function<bool()> frame = [&] {
        is_double_click = is_double_click || ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
        return true;
    };
    // The frame reads its events at `begin` and then pauses for five seconds.
    bool has_read = false;
    window.clock = [&] { return std::exchange(has_read, true) ? begin + 5 : begin; };
    ImGui::GetIO().AddMousePosEvent(700, 400);  // has no time of its own
    window.draw_frame(frame);
    double now = begin;
    window.clock = [&] { return now; };
    for (const double seconds : {1.0, 1.01, 2.0, 2.01}) {
        now = begin + seconds;
        const bool is_press = seconds == 1.0 || seconds == 2.0;
        ImGui::GetIO().AddMouseButtonEvent(0, is_press);
        window.note_input_time();
    }
    now = begin + 5;
    window.draw_frame(frame);
    window.draw_frame(frame);
    window.clock = real_clock;
    CHECK_FALSE(is_double_click);
}

}  // namespace kvscope::gui::testing
