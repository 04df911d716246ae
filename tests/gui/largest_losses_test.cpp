#include <GLFW/glfw3.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "tests/gui/driven_window.h"
#include "tests/gui/policy_runs.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

using Catch::Matchers::Contains;

/// While this exists, the mouse is over no token, because Inspector would follow it.
class MouseAway {
 public:
    explicit MouseAway(DrivenApp& driven) {
        glfwGetCursorPos(glfwGetCurrentContext(), &x_, &y_);
        int height = 0;
        glfwGetWindowSize(glfwGetCurrentContext(), nullptr, &height);
        glfwSetCursorPos(glfwGetCurrentContext(), 1, height - 1);
        driven.settle();
    }
    ~MouseAway() { glfwSetCursorPos(glfwGetCurrentContext(), x_, y_); }

 private:
    double x_ = 0, y_ = 0;
};

}  // namespace

TEST_CASE("without a selected token, the inspector lists the selected run's largest losses; a click selects one") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    const MouseAway away(driven);
    const Cursor before = driven.session().cursor();
    REQUIRE_FALSE(before.has_tokens());
    CHECK_THAT(driven.shown_text(), Contains("Where " + driven.session().look(before.run).run + " lost most"));
    driven.drive([](ImGuiTestContext& c) {
        c.MouseTeleportToPos({1, ImGui::GetMainViewport()->Size.y - 1});  // the mouse of the test
        c.Yield(3);
        c.SetRef(DrivenApp::window_of("Inspector###inspector").c_str());
        c.ItemClick("**/##place to look at");
    });
    driven.settle();
    CHECK(driven.session().cursor().has_tokens());
    CHECK(driven.session().cursor().run == before.run);
    driven.session().selection.deselect();
    driven.settle();
    CHECK_THAT(driven.shown_text(), Contains("lost most"));
}

TEST_CASE("without recorded losses, the inspector lists the tokens on which runs disagree") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const auto stored = h2o_and_snapkv();
    DrivenApp driven(explore(stored.path()));
    const MouseAway away(driven);
    CHECK_THAT(driven.shown_text(), Contains("Where 2 shown runs disagree most"));
}

TEST_CASE("if the shown runs keep the same entries, the inspector says so") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    constexpr int all = analysis::test::PolicyTrace::n_tokens;
    const analysis::test::PolicyTrace stored({{"full", all}, {"h2o", all}, {"snapkv:window=8", all}});
    DrivenApp driven(explore(stored.path()));
    const MouseAway away(driven);
    CHECK_THAT(driven.shown_text(), Contains("The 2 shown runs agree on every token."));
    CHECK_THAT(driven.shown_text(), !Contains("disagree most"));
}

TEST_CASE("a narrow Inspector shows all digits of numbers at its border") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    options.select = "token=3,layer=1,run=snapkv 16";
    DrivenApp driven(options);
    driven.app().set_scale(1.3f);
    driven.settle();
    ImPool<ImGuiTable>& tables = ImGui::GetCurrentContext()->Tables;
    const ImGuiTable* border = nullptr;
    for (int i = 0; i < tables.GetMapSize(); ++i) {
        ImGuiTable* table = tables.TryGetMapData(i);
        if (!table || table->LastFrameActive < ImGui::GetFrameCount() - 1 || table->ColumnsCount != 4) continue;
        if (std::string_view(ImGui::TableGetColumnName(table, 3)) == "margin") border = table;
    }
    REQUIRE(border);
    for (const int column : {0, 2, 3}) {
        CAPTURE(column);
        CHECK(border->Columns[column].ContentMaxXUnfrozen <= border->Columns[column].WorkMaxX + 1);
    }
    driven.app().set_scale(1);
    driven.settle();
}

}  // namespace kvscope::gui::testing
