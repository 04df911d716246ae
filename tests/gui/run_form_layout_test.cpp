#ifdef KVSCOPE_WITH_ENGINE

#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/gui/driven_form.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// Visible buttons, boxes, fields and rows of the form that its left or right border cuts off.
std::vector<std::string> cut_off(ImGuiTestContext& c, const std::vector<const char*>& parts) {
    std::vector<std::string> cut;
    for (const char* part : parts) {
        const ImGuiTestItemInfo window = c.WindowInfo(part);
        ImGuiTestItemList items;
        c.GatherItems(&items, window.ID);
        CHECK(items.GetSize() > 3);
        for (const ImGuiTestItemInfo& item : items) {
            const bool is_in_view = item.RectClipped.GetHeight() > 1 && item.RectFull.GetHeight() > 1;
            if (is_in_view && item.RectClipped.GetWidth() < item.RectFull.GetWidth()) cut.emplace_back(item.DebugLabel);
        }
    }
    return cut;
}

/// The form moves when a line with the number of tokens replaces another line.
void wait_until_tokens_are_counted(DrivenApp& driven) {
    const auto is_counted = [&] { return driven.shown_text().find("tokens; the model accepts") != std::string::npos; };
    REQUIRE(driven.draw_until(is_counted, patience));
}

}  // namespace

TEST_CASE("the form is complete in the narrow panel of Explore and in two columns") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const bool is_wide = GENERATE(false, true);
    CAPTURE(is_wide);
    const trace::sample::TemporaryFolder folder;
    AppOptions options;
    options.traces = {small_model};
    if (is_wide)
        options.view = "run";
    else
        options.layout = "explore";
    DrivenApp driven(options);
    driven.app().show_view(*find_view_kind("run"));
    const auto& engine = *driven.app().engine();
    REQUIRE(driven.draw_until([&] { return engine.status().model_path == small_model; }, patience));
    for (const auto& open : driven.app().views()) {
        RunForm form = small_form(folder / "run.h5");
        form.request.questions = {"Who jumps?", "Over whom?"};
        if (open->kind->name == "run") open->view->load(form.to_json());
    }
    wait_until_tokens_are_counted(driven);
    driven.settle();
    const std::vector<const char*> parts =
        is_wide ? std::vector<const char*>{"//run-1/text", "//run-1/form"} : std::vector<const char*>{"//run-1/form"};
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(c.WindowInfo("//run-1/form").ID);
        c.ItemOpen("###more");
        ImGuiWindow* form = c.WindowInfo("//run-1/form").Window;
        for (float y = 0; y <= form->ScrollMax.y; y += 0.7f * form->InnerRect.GetHeight()) {
            c.ScrollToY(form->ID, y);
            c.Yield(2);
            CHECK(cut_off(c, parts) == std::vector<std::string>{});
        }
        const ImRect run = c.ItemInfo("//run-1/Run").RectFull, copy = c.ItemInfo("//run-1/Copy command").RectFull;
        CHECK(c.WindowInfo("//run-1").Window->InnerRect.Contains(run));
        CHECK(c.WindowInfo("//run-1").Window->InnerRect.Contains(copy));
        if (!is_wide) return;
        // The text takes the available height, and its column does not scroll.
        const ImGuiWindow* text = c.WindowInfo("//run-1/text").Window;
        CHECK(text->ScrollMax.y == 0);
        CHECK(c.ItemInfo("//run-1/**/###aware").RectClipped.GetHeight() > 1);
    });
}

TEST_CASE("selecting policies does not move the form or scroll it sideways") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const bool is_wide = GENERATE(false, true);
    CAPTURE(is_wide);
    const trace::sample::TemporaryFolder folder;
    AppOptions options;
    options.traces = {small_model};
    if (is_wide)
        options.view = "run";
    else
        options.layout = "explore";
    DrivenApp driven(options);
    driven.app().dismiss_start();
    driven.app().show_view(*find_view_kind("run"));
    const auto& engine = *driven.app().engine();
    REQUIRE(driven.draw_until([&] { return engine.status().model_path == small_model; }, patience));
    RunForm form = small_form(folder / "run.h5");
    form.request.budgets = "4,16,1000";
    for (PolicyRow& row : form.rows) row.ticked = false;
    for (const auto& open : driven.app().views())
        if (open->kind->name == "run") open->view->load(form.to_json());
    wait_until_tokens_are_counted(driven);
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        ImGuiWindow* part = c.WindowInfo("//run-1/form").Window;
        const std::vector<std::string> ticked = {"snapkv", "h2o", "headkv", "echokv", "palu", "streaming-llm"};
        for (const std::string& name : ticked) {
            CAPTURE(name);
            c.SetRef(part->ID);
            const ImGuiTestItemInfo row = c.ItemInfo(("**/###" + name).c_str());
            REQUIRE(row.ID != 0);
            const ImGuiID box = ImHashStr("##ticked", 0, row.ParentID);
            c.ScrollToItemY(box);
            c.Yield(2);
            const float y = c.ItemInfo(box).RectFull.Min.y;
            const float head = part->Pos.y;
            c.ItemClick(box);
            for (int i = 0; i < 3; ++i) {
                c.Yield(2);
                driven.app().tasks().wait();
            }
            CHECK(c.ItemInfo(box).RectFull.Min.y == y);
            CHECK(part->Pos.y == head);
        }
        c.SetRef("//run-1");
        c.MouseMoveToPos(part->InnerRect.GetCenter());
        for (ImGuiWindow* window : {part, c.WindowInfo("//run-1").Window}) {
            for (int i = 0; i < 4; ++i) {
                c.MouseWheelX(-2);
                c.Yield(1);
                CHECK(window->Scroll.x == 0);
            }
        }
    });
}

TEST_CASE("More scrolls so that its contents are visible when it is opened at the form's end") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.app().show_view(*find_view_kind("run"));
    driven.settle();
    driven.drive([](ImGuiTestContext& c) {
        ImGuiWindow* form = c.WindowInfo("//run-1/form").Window;
        c.ScrollToY(form->ID, form->ScrollMax.y);
        c.Yield(2);
        c.SetRef(form->ID);
        CHECK(!c.ItemExists("###more/##temperature"));
        c.ItemClick("###more");
        c.Yield(3);
        CHECK(form->InnerRect.Contains(c.ItemInfo("###more/##temperature").RectFull));
    });
}

TEST_CASE("a button maximizes a narrow form to two columns and restores it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.app().show_view(*find_view_kind("run"));
    driven.settle();
    const size_t n_views = driven.app().views().size();
    const auto click = [&](const char* label) {
        driven.drive([&](ImGuiTestContext& c) {
            CHECK((c.ItemInfo("//run-1/Cancel##run").ItemFlags & ImGuiItemFlags_Disabled) != 0);  // no run in progress
            c.ItemClick(fmt::format("//run-1/{}", label).c_str());
        });
        driven.settle();
    };
    const auto has_columns = [&] {
        bool has = false;
        driven.drive([&](ImGuiTestContext& c) {
            const ImGuiWindow* text = c.WindowInfo("//run-1/text", ImGuiTestOpFlags_NoError).Window;
            has = text && text->Active;
        });
        return has;
    };
    CHECK(!has_columns());
    click("Maximize");
    CHECK(driven.app().views().size() == 1);
    CHECK(has_columns());
    click("Restore");
    CHECK(driven.app().views().size() == n_views);
    CHECK(!has_columns());
}

// If the copy is not dropped, the address sanitizer reports a read beyond the text.
TEST_CASE("a question replaced by the program is drawn at another width") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    ImGuiID question = 0;
    form.drive([&](ImGuiTestContext& c) {
        question = c.ItemInfo("**/##question").ID;
        c.ItemInputValue("**/##question", std::string(400, 'w').c_str());
        c.ItemClick("**/###aware");
    });
    const ImGuiInputTextState& copy = ImGui::GetCurrentContext()->InputTextState;
    CHECK(copy.ID == question);
    form.fill(small_form(form.folder / "run.h5"));
    form.drive([](ImGuiTestContext& c) { c.Yield(2); });
    CHECK(copy.ID != question);
    form.drive([](ImGuiTestContext& c) {
        ImGui::GetStyle().ScrollbarSize += 9;  // makes the form narrower
        c.Yield(3);
        ImGui::GetStyle().ScrollbarSize -= 9;
    });
    CHECK(form.state()["questions"] != std::vector<std::string>{std::string(400, 'w')});
}

}  // namespace kvscope::gui::testing

#endif
