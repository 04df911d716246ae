#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <string>

#include "app/gui/drawing/shaped_text.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("a letter key is a command only if a view has the keyboard") {
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

namespace {

constexpr const char* mark_field = "//prompt-1/##prompt mark";

/// Clicks the field for marked text at its left end (0) or right end (1) and then runs `steps`.
void in_mark_field(DrivenApp& driven, float share,
                   const std::function<void(ImGuiTestContext&, ImGuiInputTextState&)>& steps) {
    driven.drive([&](ImGuiTestContext& c) {
        const auto item = c.ItemInfo(mark_field);
        const float inset = ImGui::GetStyle().FramePadding.x + 1;
        c.MouseMoveToPos(
            {ImLerp(item.RectFull.Min.x + inset, item.RectFull.Max.x - inset, share), item.RectFull.GetCenter().y});
        c.MouseClick();
        c.Yield(2);
        ImGuiInputTextState* state = ImGui::GetInputTextState(item.ID);
        IM_CHECK(state != nullptr);
        steps(c, *state);
        c.Yield(2);
    });
}

/// Number of pixels with a color between two corners.
int n_colored(const Screenshot& shot, ImVec2 from, ImVec2 to) {
    const Screenshot part = crop_screenshot(shot, static_cast<int>(from.x), static_cast<int>(from.y),
                                            static_cast<int>(to.x - from.x), static_cast<int>(to.y - from.y));
    int n = 0;
    for (size_t i = 0; i + 2 < part.rgb.size(); i += 3) {
        const auto [low, high] = std::minmax({part.rgb[i], part.rgb[i + 1], part.rgb[i + 2]});
        if (high - low > 80) ++n;
    }
    return n;
}

}  // namespace

TEST_CASE("a field draws Arabic from right to left, and clicks and arrow keys follow the text") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "prompt"));
    driven.settle();
    const std::string arabic = "مرحبا بالعالم";
    driven.session().mark = arabic;
    // At the left end of right-to-left text, the caret is after the last letter.
    in_mark_field(driven, 0, [&](ImGuiTestContext& c, ImGuiInputTextState& state) {
        const auto end = static_cast<int>(arabic.size());
        IM_CHECK_EQ(state.GetCursorPos(), end);
        c.KeyPress(ImGuiKey_LeftArrow);
        IM_CHECK_EQ(state.GetCursorPos(), end);
        c.KeyPress(ImGuiKey_RightArrow);
        c.KeyPress(ImGuiKey_RightArrow);
        IM_CHECK_EQ(state.GetCursorPos(), end - 4);  // two bytes per letter
        c.KeyPress(ImGuiMod_Shift | ImGuiKey_LeftArrow);
        IM_CHECK_EQ(state.GetSelectionStart(), end - 4);
        IM_CHECK_EQ(state.GetSelectionEnd(), end - 2);
        c.KeyPress(ImGuiKey_RightArrow);
        IM_CHECK_EQ(state.GetCursorPos(), end - 4);
        c.KeyPress(ImGuiKey_End);
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_RightArrow);
        IM_CHECK_EQ(state.GetCursorPos(), static_cast<int>(arabic.find(' ')) + 1);
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_LeftArrow);
        IM_CHECK_EQ(state.GetCursorPos(), end);
        c.KeyChars("!");
    });
    CHECK(driven.session().mark == arabic + "!");
}

TEST_CASE("a field accepts emoji, draws them in color and erases each with its parts") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "prompt"));
    driven.settle();
    const std::string wolf = "a 🐺";
    const std::string joined = "👩‍🔬";  // three code points
    const std::string brown = "👍🏽";      // with a skin tone
    ImRect field;
    in_mark_field(driven, 0, [&](ImGuiTestContext& c, ImGuiInputTextState&) {
        field = c.ItemInfo(mark_field).RectFull;
        c.KeyChars((wolf + joined).c_str());
        ImGui::SetClipboardText(brown.c_str());  // the test engine has its own clipboard
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_V);
    });
    CHECK(driven.session().mark == wolf + joined + brown);
    const Screenshot shot = driven.picture();
    CHECK(n_colored(shot, field.Min, field.Max) > 40);
    if (const char* path = std::getenv("KVSCOPE_TEST_PICTURE")) write_png(shot, path);

    in_mark_field(driven, 1, [&](ImGuiTestContext& c, ImGuiInputTextState& state) {
        IM_CHECK_EQ(state.GetCursorPos(), static_cast<int>(driven.session().mark.size()));
        c.KeyPress(ImGuiKey_LeftArrow);
        c.KeyPress(ImGuiKey_LeftArrow);
        IM_CHECK_EQ(state.GetCursorPos(), static_cast<int>(wolf.size()));
        c.KeyPress(ImGuiKey_Delete);
    });
    CHECK(driven.session().mark == wolf + brown);
    in_mark_field(driven, 1, [&](ImGuiTestContext& c, ImGuiInputTextState&) {
        c.KeyPress(ImGuiKey_Backspace);
        c.Yield(2);
        IM_CHECK_STR_EQ(driven.session().mark.c_str(), wolf.c_str());
        c.KeyPress(ImGuiKey_Backspace);
    });
    CHECK(driven.session().mark == "a ");
}

TEST_CASE("every text of the window is shaped when Dear ImGui draws, measures or wraps it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "prompt"));
    driven.session().mark = "🍎🍎🍎🍎";
    driven.settle();
    const ImVec2 size = ImGui::GetMainViewport()->Size;
    const ImVec2 bar{0, size.y - ImGui::GetFrameHeight()};
    const int with_emoji = n_colored(driven.picture(), bar, size);  // “…” is not in this prompt
    driven.session().mark = "wwwwwwww";
    driven.settle();
    CHECK(with_emoji > n_colored(driven.picture(), bar, size) + 100);

    const std::string arabic = "مرحبا بالعالم مرحبا بالعالم";
    test_window()->draw_frame([&] {
        const float height = ImGui::GetTextLineHeight();
        const ImVec2 whole = ImGui::CalcTextSize(arabic.c_str());
        CHECK(whole.x == std::ceil(text_width(arabic)));  // joined letters are narrower than separate ones
        const float half = whole.x * 0.6f;
        const ImVec2 wrapped = ImGui::CalcTextSize((arabic + "\nplain").c_str(), nullptr, false, half);
        CHECK(wrapped.y == 3 * height);
        CHECK(wrapped.x <= std::ceil(half));
        const char* rest = nullptr;
        ImGui::GetFont()->CalcTextSizeA(ImGui::GetFontSize(), half, 0, arabic.c_str(), nullptr, &rest);
        CHECK(rest > arabic.c_str());
        CHECK(rest < arabic.c_str() + arabic.size());
        return driven.app().frame();
    });
}

#ifdef KVSCOPE_WITH_ENGINE

TEST_CASE("Escape leaves the prompt's field and keeps its text") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const std::string start = GENERATE("", "مرحبا ");
    AppOptions options;
    options.view = "run";
    DrivenApp driven(options);
    driven.app().dismiss_start();
    driven.settle();
    std::string context;
    driven.drive([&](ImGuiTestContext& c) {
        DrivenApp::refer_to_prompt_of_run(c);
        c.ItemClick("##context");
        const ImGuiID field = ImGui::GetActiveID();
        c.KeyChars(start.c_str());
        c.KeyChars("once upon a time");
        c.Yield(2);
        IM_CHECK_EQ(ImGui::GetActiveID(), field);
        c.KeyPress(ImGuiKey_Escape);
        c.Yield(2);
        IM_CHECK_NE(ImGui::GetActiveID(), field);
    });
    nlohmann::json saved;
    driven.app().views()[0]->view->save(saved);
    CHECK(saved.dump().find("once upon a time") != std::string::npos);
}

#endif

}  // namespace kvscope::gui::testing
