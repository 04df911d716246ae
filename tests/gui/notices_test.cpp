#include <imgui_internal.h>

#include <catch2/catch.hpp>

#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("a notice of one line lies in the menu bar, behind the menus, and over no view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.app().notice("report-retention.pdf is written");
    driven.settle();
    const ImGuiWindow* notice = ImGui::FindWindowByName("##notice 0");
    const ImGuiWindow* bar = ImGui::FindWindowByName("##MainMenuBar");
    REQUIRE((notice && notice->WasActive && bar));
    CHECK(bar->Rect().Contains(notice->Rect()));
    CHECK(notice->Pos.x > bar->Size.x / 4);
    driven.drive([](ImGuiTestContext& c) {
        c.MouseTeleportToPos(ImGui::FindWindowByName("##notice 0")->Rect().GetCenter());
        c.Yield(2);
        c.MouseClick();
        c.Yield(2);
    });
    CHECK_FALSE(notice->WasActive);
}

}  // namespace kvscope::gui::testing
