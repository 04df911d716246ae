#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/window_size.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// A view's windows whose contents are wider than they are, so that their right end is cut off.
std::vector<std::string> cut_windows(const std::string& view) {
    std::vector<std::string> cut;
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
        const std::string name = window->Name;
        if (!window->WasActive || window->Hidden || name.find("###" + view + "-1") == std::string::npos) continue;
        if (window->ScrollMax.x > 0) cut.push_back(fmt::format("{}: {} too wide", name, window->ScrollMax.x));
    }
    return cut;
}

}  // namespace

TEST_CASE("no label is cut off in the narrow views of Explore at 1280 × 720") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    const std::filesystem::path other = folder / "one.h5";
    const std::filesystem::path longer = folder / "what somebody called this trace with great care, at length.h5";
    trace::sample::write(other);
    trace::sample::write(longer);
    AppOptions options = explore(longer);
    options.traces.push_back(other);
    DrivenApp driven(options);
    const WindowSize size(driven, 1280, 720);
    driven.app().apply_layout("explore");
    driven.settle();
    driven.app().show_view(*find_view_kind("inspector"));
    driven.settle();
    CHECK(cut_windows("inspector") == std::vector<std::string>{});
    Cursor cursor = driven.session().cursor();
    cursor.first_token = 3;
    cursor.last_token = 12;
    driven.session().selection.set(cursor);
    driven.settle();
    CHECK(cut_windows("inspector") == std::vector<std::string>{});
    driven.app().show_view(*find_view_kind("trace"));
    driven.settle();
    CHECK(cut_windows("trace") == std::vector<std::string>{});
    if (!driven.app().engine()) return;
    driven.app().show_view(*find_view_kind("training"));
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//training-1");
        c.ComboClick("##Stage 1/gradient descent");
        c.ItemInputValue("##Steps of stage 2", "5");
        c.Yield(2);
        CHECK(cut_windows("training") == std::vector<std::string>{});
    });
}

}  // namespace kvscope::gui::testing
