#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/gui/drawn_text.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/window_size.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

std::vector<std::string> faults_of(DrivenApp& driven, const std::string& view) {
    std::vector<std::string> faults;
    driven.drive([&](ImGuiTestContext& c) {
        faults = faults_of_text(view, items_of_view(c, view, "##badge"));
        for (const std::string& cut : cut_items(c, view)) faults.push_back(cut);
    });
    return faults;
}

/// Text in a selection field whose text has this end; empty if there is none.
std::string text_in_chooser(const std::string& shown_text, const std::string& end_of_choice) {
    const size_t end = shown_text.find(end_of_choice + " }");
    if (end == std::string::npos) return "";
    const size_t begin = shown_text.rfind("{ ", end) + 2;
    return shown_text.substr(begin, end + end_of_choice.size() - begin);
}

/// Two traces in a folder; the first one has a long name.
AppOptions explore_long_and_short_name(const trace::sample::TemporaryFolder& folder) {
    const std::filesystem::path other = folder / "one.h5";
    const std::filesystem::path longer = folder / "what somebody called this trace with great care, at length.h5";
    trace::sample::write(other);
    trace::sample::write(longer);
    AppOptions options = explore(longer);
    options.traces.push_back(other);
    return options;
}

}  // namespace

TEST_CASE("the narrow views of Explore at 1280 × 720 have no cut label and no overlapping text") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    DrivenApp driven(explore_long_and_short_name(folder));
    const WindowSize size(driven, 1280, 720);
    driven.app().apply_layout("explore");
    driven.settle();
    driven.app().show_view(*find_view_kind("inspector"));
    driven.settle();
    CHECK(faults_of(driven, "inspector") == std::vector<std::string>{});
    Cursor cursor = driven.session().cursor();
    cursor.first_token = 3;
    cursor.last_token = 12;
    driven.session().selection.set(cursor);
    driven.settle();
    CHECK(faults_of(driven, "inspector") == std::vector<std::string>{});
    driven.session().search = "w1";
    for (const char* view : {"prompt", "retention"}) {
        CAPTURE(view);
        driven.app().show_view(*find_view_kind(view));
        driven.settle();
        std::vector<std::string> faults = faults_of(driven, view);
        std::erase_if(faults, [](const std::string& fault) { return fault.find("/text_") != std::string::npos; });
        CHECK(faults == std::vector<std::string>{});  // the columns of Prompt scroll
    }
    driven.app().show_view(*find_view_kind("trace"));
    driven.settle();
    CHECK(faults_of(driven, "trace") == std::vector<std::string>{});
    const std::string preview = text_in_chooser(driven.shown_text(), "length.h5");
    REQUIRE(!preview.empty());
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect chooser = c.ItemInfo("//trace-1/##trace file").RectFull;
        const float room = chooser.GetWidth() - ImGui::GetFrameHeight() - ImGui::GetStyle().FramePadding.x;
        CAPTURE(preview);
        CHECK(ImGui::CalcTextSize(preview.c_str()).x <= room);
        CHECK(chooser.Max.x <= ImGui::FindWindowByName("Trace###trace-1")->InnerRect.Max.x);
    });
    if (!driven.app().engine()) return;
    driven.app().show_view(*find_view_kind("training"));
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//training-1");
        c.ComboClick("##Stage 1/gradient descent");
        c.ItemInputValue("##Steps of stage 2", "5");
        c.Yield(2);
    });
    CHECK(faults_of(driven, "training") == std::vector<std::string>{});
}

TEST_CASE("at 1280 × 720, answers do not overlap and no label is cut off") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const char* layout = GENERATE("explore", "compare");
    const trace::sample::TemporaryFolder folder;
    DrivenApp driven(explore_long_and_short_name(folder));
    const WindowSize size(driven, 1280, 720);
    driven.app().apply_layout(layout);
    driven.settle();
    driven.app().show_view(*find_view_kind("answers"));
    driven.settle();
    for (const bool is_stacked : {false, true}) {
        CAPTURE(layout, is_stacked);
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//answers-1");
            c.ComboClick(is_stacked ? "##answers how/below each other" : "##answers how/side by side");
            c.MouseMoveToPos({2, 700});
            c.Yield(3);
        });
        driven.settle();
        CHECK(faults_of(driven, "answers") == std::vector<std::string>{});
    }
}

}  // namespace kvscope::gui::testing
