#include "tests/gui/driven_window.h"

#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

namespace kvscope::gui::testing {
namespace {

struct TestWindow {
    Window window{{.width = 1600, .height = 1000, .visible = true, .vsync = false, .only_pictures = true}};
    ImGuiTestEngine* engine = ImGuiTestEngine_CreateContext();

    TestWindow() {
        ImGuiTestEngineIO& io = ImGuiTestEngine_GetIO(engine);
        io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
        io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Warning;
        io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Info;
        io.ConfigLogToTTY = true;
        io.ConfigNoThrottle = true;
        io.ConfigSavedSettings = false;
        ImGuiTestEngine_Start(engine, ImGui::GetCurrentContext());
    }
};

TestWindow* whole_window() {
    // Never destroyed, because the test engine has to outlive Dear ImGui.
    static TestWindow* made = Window::display_is_there() ? new TestWindow : nullptr;
    return made;
}

}  // namespace

Window* test_window() { return whole_window() ? &whole_window()->window : nullptr; }

DrivenApp::DrivenApp(AppOptions options, bool remember)
    : app_(*test_window(), [&] {
          options.remember = remember;
          return options;
      }()) {
    // Discards text, scrolling and open trees of earlier tests.
    ImGui::ClearActiveID();
    ImGui::GetCurrentContext()->InputTextDeactivatedState.ID = 0;
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
        window->Scroll = {};
        window->StateStorage.Clear();
    }
    settle();
}

void DrivenApp::drive(const std::function<void(ImGuiTestContext&)>& steps) {
    ImGuiTestEngine* engine = whole_window()->engine;
    ImGuiTest* test = ImGuiTestEngine_RegisterTest(engine, "kvscope", "driven");
    test->TestFunc = [&](ImGuiTestContext* context) {
        // Shortly after typing, character keys do not run actions.
        if (!app_.actions().takes_single_keys() && !ImGui::GetIO().WantTextInput) context->SleepNoSkip(1.1f, 0.4f);
        steps(*context);
    };
    ImGuiTestEngine_QueueTest(engine, test, ImGuiTestRunFlags_RunFromCommandLine);
    while (!ImGuiTestEngine_IsTestQueueEmpty(engine)) {
        draw();
        ImGuiTestEngine_PostSwap(engine);
    }
    const ImGuiTestStatus status = test->Output.Status;
    ImGuiTestEngine_UnregisterTest(engine, test);
    REQUIRE(status == ImGuiTestStatus_Success);
}

bool DrivenApp::draw_until(const std::function<bool()>& condition, int frames) {
    for (int i = 0; i < frames; ++i) {
        if (condition()) return true;
        draw();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
}

void DrivenApp::draw() {
    has_ended_ = !test_window()->draw_frame([&] { return app_.frame(); });
    check_views();
}

void DrivenApp::check_views() {
    const auto& failures = app_.view_failures();
    for (; n_failures_seen_ < failures.size(); ++n_failures_seen_) {
        if (!are_failures_allowed_) FAIL_CHECK(failures[n_failures_seen_]);
    }
}

void DrivenApp::start_by_palette(const std::string& typed) {
    drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsReplaceEnter(typed.c_str());
        c.Yield(3);
    });
    settle();
}

void DrivenApp::refer_to_prompt_of_run(ImGuiTestContext& c) {
    const auto text = c.WindowInfo("//run-1/text", ImGuiTestOpFlags_NoError);
    const bool has_columns = text.Window && text.Window->Active;
    c.SetRef(has_columns ? text.ID : c.WindowInfo("//run-1/form").ID);
}

void DrivenApp::settle() {
    for (int i = 0; i < 4; ++i) {
        draw();
        app_.tasks().wait();
    }
    draw();
}

std::string DrivenApp::shown_text() {
    std::string text;
    test_window()->draw_frame([&] {
        ImGui::LogToBuffer();
        const bool goes_on = app_.frame();
        text = ImGui::GetCurrentContext()->LogBuffer.c_str();
        ImGui::LogFinish();
        return goes_on;
    });
    check_views();
    return text;
}

Screenshot DrivenApp::picture() {
    Screenshot shot = test_window()->capture([&] { return app_.frame(); });
    check_views();
    return shot;
}

}  // namespace kvscope::gui::testing
