#include <imgui_internal.h>
#include <implot.h>

#include <catch2/catch.hpp>
#include <stdexcept>

#include "app/gui/view/action_registry.h"
#include "app/gui/view/view.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// Where the next frame throws; nowhere: draws without an exception.
enum class Where { nowhere, child, table, plot, tooltip, tab, unknown };
Where throws_in = Where::nowhere;
int n_drawn = 0;
bool is_figure_broken = false;
bool is_state_broken = false;

[[noreturn]] void fail() { throw std::runtime_error("the needle is broken"); }

/// Leaves everything open that a view can open.
class FailingView : public View {
 public:
    void draw(Context& /*context*/) override {
        ++n_drawn;
        ImGui::PushID("of a view");
        ImGui::PushStyleColor(ImGuiCol_Text, IM_COL32_WHITE);
        ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {9, 9});
        ImGui::PushClipRect({0, 0}, {2000, 2000}, false);
        ImGui::BeginDisabled();
        ImGui::BeginGroup();
        if (throws_in == Where::unknown) throw 1;
        if (throws_in == Where::child) {
            ImGui::BeginChild("inner", {100, 100});
            ImGui::PushID(7);
            fail();
        }
        if (throws_in == Where::table) {
            ImGui::BeginTable("table", 2, ImGuiTableFlags_ScrollY, {100, 100});
            ImGui::TableNextColumn();
            fail();
        }
        if (throws_in == Where::plot) {
            if (ImPlot::BeginPlot("plot", {200, 200})) fail();
        }
        if (throws_in == Where::tooltip) {
            if (ImGui::BeginTooltip()) fail();
        }
        if (throws_in == Where::tab) {
            if (ImGui::BeginTabBar("tabs") && ImGui::BeginTabItem("one")) fail();
        }
        ImGui::EndGroup();
        ImGui::EndDisabled();
        ImGui::PopClipRect();
        ImGui::PopStyleVar();
        ImGui::PopStyleColor();
        ImGui::PopID();
        if (ImPlot::BeginPlot("sound plot", {200, 200})) ImPlot::EndPlot();
        ImGui::Button("drawn");
    }
    std::optional<FigureRequest> figure(const Session& /*session*/) const override {
        if (is_figure_broken) fail();
        return std::nullopt;
    }
    void save(nlohmann::json& /*state*/) const override {
        if (is_state_broken) fail();
    }
    void load(const nlohmann::json& /*state*/) override {
        if (is_state_broken) fail();
    }
};

const ViewKind failing = {
    "failing",    "Failing",    "A view of the tests",
    Dock::center, Topic::files, []() -> std::unique_ptr<View> { return std::make_unique<FailingView>(); }};

}  // namespace

TEST_CASE("a view's exception is shown in its window and counted once, and a retry draws the view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    driven.allow_view_failures();
    const bool is_known = GENERATE(true, false);
    throws_in =
        is_known ? GENERATE(Where::child, Where::table, Where::plot, Where::tooltip, Where::tab) : Where::unknown;
    n_drawn = 0;
    driven.app().open_view(failing);
    driven.settle();
    CHECK(n_drawn == 1);
    REQUIRE(driven.app().view_failures().size() == 1);
    CHECK(driven.app().view_failures()[0].find("Failing") != std::string::npos);
    CHECK((driven.app().view_failures()[0].find("the needle is broken") != std::string::npos) == is_known);
    CHECK(driven.app().n_errors() == 1);  // with --screenshot, the exit status is then 1

    // The first retry fails and the second succeeds. The window around the view does not change.
    driven.drive([](ImGuiTestContext& c) {
        c.ItemClick("//failing-1/Try again");
        c.Yield(2);
        throws_in = Where::nowhere;
        c.ItemClick("//failing-1/Try again");
        c.Yield(2);
        IM_CHECK(c.ItemExists("//failing-1/drawn"));
        c.ItemClick("//failing-1/drawn");
    });
    CHECK(driven.app().view_failures().size() == 2);
    const ImGuiContext& context = *ImGui::GetCurrentContext();
    CHECK(context.ErrorCountCurrentFrame == 0);
}

TEST_CASE("a view's exception during export becomes a notice, and its state is not saved") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    throws_in = Where::nowhere;
    driven.app().open_view(failing);
    driven.settle();
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//failing-1/drawn"); });
    is_figure_broken = true;
    is_state_broken = true;
    size_t n_failed = 0;
    for (const Action& action : driven.app().actions().all()) {
        if (!action.name.starts_with("Export") && !action.name.starts_with("Copy figure")) continue;
        const size_t before = driven.app().n_errors();
        driven.app().actions().start(action);
        n_failed += driven.app().n_errors() > before &&
                    driven.app().notices().back().find("the needle is broken") != std::string::npos;
    }
    CHECK(n_failed >= 1);
    const auto state = driven.app().layout_state();
    CHECK(state["views"].dump().find("failing") != std::string::npos);
    driven.settle();
    is_figure_broken = false;
    is_state_broken = false;
}

TEST_CASE("a view that cannot draw one run is retried with another") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    driven.allow_view_failures();
    throws_in = Where::table;
    driven.app().open_view(failing);
    driven.settle();
    throws_in = Where::nowhere;
    n_drawn = 0;
    driven.settle();
    CHECK(n_drawn == 0);
    const Document& document = *driven.session().focus();
    const RunKey before = driven.session().cursor().run;
    for (const RunKey& run : document.keys(0)) {
        if (run != before) driven.session().selection.select_run(run);
    }
    REQUIRE(driven.session().cursor().run != before);
    driven.settle();
    CHECK(n_drawn > 0);
    CHECK(driven.app().view_failures().size() == 1);
}

TEST_CASE("an exception of a menu or of a file dialog's question is reported once, and the window continues") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    bool is_broken = true;
    Action action;
    action.name = "An action of the tests";
    action.menu = "File";
    action.run = [] {};
    action.enabled = [&] { return is_broken ? throw std::runtime_error("the menu is broken") : true; };
    driven.app().actions().add(action);
    driven.drive([&](ImGuiTestContext& c) {
        c.ItemClick("//##MainMenuBar/##MenuBar/File");
        c.Yield(5);
        is_broken = false;
        c.PopupCloseAll();
        c.Yield(2);
    });
    CHECK(driven.app().n_errors() == 1);
    CHECK(driven.app().notices().back() == "the menus: the menu is broken");
    const ImGuiWindow* own = ImGui::FindWindowByName("Debug##Default");
    CHECK((!own || !own->Active || own->Hidden || !own->WriteAccessed));
    CHECK(ImGui::GetCurrentContext()->ErrorCountCurrentFrame == 0);
    CHECK(driven.shown_text().find("Retention") != std::string::npos);
}

}  // namespace kvscope::gui::testing
