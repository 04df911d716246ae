#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

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

TEST_CASE("a field sets Arabic from right to left, and a click puts the caret where the text is") {
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
}

}  // namespace kvscope::gui::testing
