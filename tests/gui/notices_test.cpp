#include <imgui_internal.h>

#include <catch2/catch.hpp>

#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("a notice of one line is in the menu bar, after the menus, and covers no view") {
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

TEST_CASE("of many notices, two are shown, errors first, and a click on the count dismisses the others") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    for (const char* text : {"first failure", "second failure"}) driven.app().notice(text, true);
    for (const char* text : {"first event", "second event", "third event"}) driven.app().notice(text);
    driven.settle();
    std::string said = driven.shown_text();
    CHECK_THAT(said, Catch::Contains("first failure") && Catch::Contains("second failure"));
    CHECK_THAT(said, Catch::Contains("3 more in Log") && !Catch::Contains("event"));
    const auto click = [&](const char* name) {
        driven.drive([&](ImGuiTestContext& c) {
            c.MouseTeleportToPos(ImGui::FindWindowByName(name)->Rect().GetCenter());
            c.Yield(2);
            c.MouseClick();
            c.Yield(2);
        });
    };
    click("##notice 0");
    said = driven.shown_text();
    CHECK_THAT(said, Catch::Contains("third event") && Catch::Contains("2 more in Log"));
    click("##more notices");
    said = driven.shown_text();
    CHECK_THAT(said,
               Catch::Contains("third event") && !Catch::Contains("second event") && !Catch::Contains("more in Log"));
    CHECK(driven.app().notices().size() == 5);
}

}  // namespace kvscope::gui::testing
