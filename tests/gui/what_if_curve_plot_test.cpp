#include <catch2/catch.hpp>
#include <string>

#include "analysis/what_if/kept_summary.h"
#include "analysis/what_if/what_if.h"
#include "app/gui/view/view.h"
#include "common/json.h"
#include "tests/analysis/policy_trace.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/policy_runs.h"
#include "tests/skip.h"

using namespace kvscope;
using namespace kvscope::gui;
using namespace kvscope::gui::testing;
using analysis::test::PolicyTrace;
using Catch::Matchers::Contains;

namespace {

const std::string what_if_window = DrivenApp::window_of("What-if###what_if");

AppOptions options_of(const PolicyTrace& stored, bool is_alone) {
    AppOptions options;
    options.traces = {stored.path()};
    (is_alone ? options.view : options.layout) = is_alone ? "what_if" : "explore";
    return options;
}

/// A single step that brings the view to the front.
void show_what_if(DrivenApp& driven) {
    driven.drive([](ImGuiTestContext& c) { c.WindowFocus(what_if_window.c_str()); });
    driven.settle();
}

View& what_if_of(DrivenApp& driven) {
    for (const auto& open : driven.app().views())
        if (open->kind->name == "what_if") return *open->view;
    throw std::runtime_error("the view is not open");
}

int64_t budget_of(const Session& session) { return session.attributes(session.cursor().run).budget; }

/// Clicks at half the height of the plot's data. `across` is the share of its width.
void click_plot(DrivenApp& driven, float across) {
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(what_if_window.c_str());
        const ImGuiWindow* plot = nullptr;
        for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
            if (std::string(window->Name).find("###what_if") != std::string::npos &&
                std::string(window->Name).find("/panels") != std::string::npos && window->Active)
                plot = window;
        IM_CHECK_SILENT(plot != nullptr);
        c.MouseMoveToPos({plot->Pos.x + across * plot->Size.x, plot->Pos.y + 0.4f * plot->Size.y});
        c.Yield(2);
        c.MouseClick();
        c.Yield(2);
    });
    driven.settle();
}

}  // namespace

TEST_CASE("one step shows the budget at which a policy's coverage reaches a share, and a click selects it",
          "[curves]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const auto stored = h2o_and_snapkv();
    DrivenApp driven(options_of(stored, false));
    driven.settle();
    Session& session = driven.session();
    int steps = 0;
    show_what_if(driven), ++steps;
    CHECK(steps == 1);
    const std::string said = driven.shown_text();
    CHECK_THAT(said, Contains("reaches") && Contains("snapkv:window=8") && Contains("h2o"));

    const auto reader = stored.reader();
    const analysis::WhatIf what_if(reader, 0, 2);
    int64_t first = 9;
    while (analysis::summarize_kept_entries(reader, 0, what_if(what_if.recorded(), first)).coverage < 0.9) ++first;
    CHECK_THAT(said, Contains(std::to_string(first) + " ("));

    const RunKey snapkv = session.documents().front()->keys(0).at(2);
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(what_if_window.c_str());
        c.ItemClick(("**/" + snapkv.text() + "/snapkv:window=8").c_str());
    });
    driven.settle();
    CHECK(budget_of(session) == first);
    CHECK(session.documents().front()->is_what_if(session.cursor().run.run));
    CHECK(session.documents().front()->source_of(session.cursor().run.run) == snapkv.run);
}

TEST_CASE("a click in the plot of curves moves the slider, and the plot's choices are saved", "[curves]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"h2o", 12}});
    DrivenApp driven(options_of(stored, true));
    driven.settle();
    Session& session = driven.session();
    session.selection.select_run(session.documents().front()->keys(0).at(1));
    driven.settle();
    click_plot(driven, 0.9f);
    const int64_t high = budget_of(session);
    CHECK(high > 20);
    click_plot(driven, 0.5f);
    CHECK(budget_of(session) > 1);
    CHECK(budget_of(session) < high);

    driven.drive([](ImGuiTestContext& c) {
        c.SetRef(what_if_window.c_str());
        c.ComboClick("##curve measure/Cache");
    });
    driven.settle();
    nlohmann::json state;
    what_if_of(driven).save(state);
    CHECK(state["curve measure"] == "bytes");
    CHECK_FALSE(state.contains("curves"));  // the user has not opened or closed them
    CHECK(state["curve threshold"] == 0.9);
    state["curve measure"] = "of a later version";
    state["curve threshold"] = 7;
    what_if_of(driven).load(state);
    what_if_of(driven).save(state);
    CHECK(state["curve measure"] == "coverage");
    CHECK(state["curve threshold"] == 0.9);
}
