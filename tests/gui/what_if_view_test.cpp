#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>

#include "analysis/tables/table_format.h"
#include "analysis/what_if/kept_summary.h"
#include "analysis/what_if/what_if.h"
#include "app/gui/view_data/live_what_if.h"
#include "tests/gui/drawn_text.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/policy_runs.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/window_size.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// What-if next to other views, with SnapKV's run selected.
struct WhatIfWindow {
    analysis::test::PolicyTrace stored = h2o_and_snapkv();
    DrivenApp driven{explore(stored.path())};
    RunKey source;

    WhatIfWindow() {
        driven.settle();
        source = driven.session().all_runs().at(2);
        select(source);
    }

    void select(const RunKey& run) {
        driven.session().selection.select_run(run);
        drive([](ImGuiTestContext& c) { c.WindowFocus("//What-if###what_if-1"); });
    }

    void drive(const std::function<void(ImGuiTestContext&)>& steps) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//What-if###what_if-1");
            steps(c);
        });
        driven.settle();
    }

    void set_budget(int budget) {
        drive([&](ImGuiTestContext& c) { c.ItemInputValue("##budget number", budget); });
    }

    analysis::KeptSummary at(int64_t budget) const {
        const auto reader = stored.reader();
        const analysis::WhatIf what_if(reader, 0, 2);
        return analysis::summarize_kept_entries(reader, 0, what_if(what_if.recorded(), budget));
    }

    /// Whether the table shows this budget's entries and their difference from the recorded run.
    bool shows(int64_t budget) {
        const analysis::KeptSummary now = at(budget), recorded = at(20);
        const std::string text = driven.shown_text();
        INFO(text);
        const auto says = [&](const std::string& words) { return text.find(words) != std::string::npos; };
        return says(fmt::format("{:.1f} %", 100 * now.coverage)) && says(analysis::format_count(now.n_entries)) &&
               says("change") && says("−" + analysis::format_count(recorded.n_entries - now.n_entries));
    }
};

}  // namespace

TEST_CASE("at 1280 × 720, What-if shows all columns when it opens and after its slider moves") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WhatIfWindow window;
    const WindowSize size(window.driven, 1280, 720);
    window.driven.app().apply_layout("explore");
    window.driven.settle();
    window.select(window.source);
    for (const bool is_moved : {false, true}) {
        CAPTURE(is_moved);
        if (is_moved) window.set_budget(12);
        ImGuiContext& g = *ImGui::GetCurrentContext();
        int n_tables = 0;
        for (int i = 0; i < g.Tables.GetMapSize(); ++i) {
            const ImGuiTable* table = g.Tables.TryGetMapData(i);
            if (!table || table->LastFrameActive < g.FrameCount - 1) continue;
            if (std::string(table->OuterWindow->RootWindow->Name).find("###what_if-1") == std::string::npos) continue;
            ++n_tables;
            for (int column = 0; column < table->ColumnsCount; ++column) {
                CAPTURE(column);
                CHECK(table->Columns[column].IsVisibleX);
                CHECK(table->Columns[column].ContentMaxXUnfrozen <= table->Columns[column].WorkMaxX + 1);
                CHECK(table->Columns[column].WorkMaxX <= table->OuterWindow->InnerClipRect.Max.x + 1);
            }
        }
        CHECK(n_tables >= 1);
        CHECK(faults_of_text("what_if") == std::vector<std::string>{});
    }
}

TEST_CASE("a narrow What-if shows the change instead of the recorded values") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WhatIfWindow window;
    const WindowSize size(window.driven, 640, 720);
    window.driven.app().apply_layout("explore");
    window.driven.settle();
    window.select(window.source);
    window.set_budget(12);
    CHECK(window.shows(12));
    CHECK(window.driven.shown_text().find("recorded\n") == std::string::npos);
    CHECK(faults_of_text("what_if") == std::vector<std::string>{});
}

TEST_CASE("a kept what-if has its own budget and numbers") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WhatIfWindow window;
    window.set_budget(12);
    REQUIRE(window.shows(12));
    window.drive([](ImGuiTestContext& c) { c.ItemClick("Keep"); });
    CHECK(window.shows(12));
    CHECK(window.driven.session().attributes(window.driven.session().cursor().run).budget == 12);
    window.drive([](ImGuiTestContext& c) {
        CHECK((c.ItemInfo("Keep").ItemFlags & ImGuiItemFlags_Disabled) != 0);
        CHECK((c.ItemInfo("Reset").ItemFlags & ImGuiItemFlags_Disabled) == 0);
    });
    // The next what-if starts from the kept one.
    const RunKey kept = window.driven.session().cursor().run;
    window.set_budget(10);
    CHECK(window.shows(10));
    CHECK(window.driven.session().cursor().run != kept);
    CHECK(window.driven.session().attributes(kept).budget == 12);
}

TEST_CASE("the sliders show the settings of a selected kept what-if, then those of the current one") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WhatIfWindow window;
    window.set_budget(12);
    window.drive([](ImGuiTestContext& c) { c.ItemClick("Keep"); });
    const RunKey kept = window.driven.session().cursor().run;
    window.set_budget(10);
    const RunKey moved = window.driven.session().cursor().run;
    window.select(kept);
    CHECK(window.shows(12));
    CHECK(window.driven.session().attributes(moved).budget == 10);
    window.select(moved);
    CHECK(window.shows(10));
    window.select(kept);
    window.drive([](ImGuiTestContext& c) { c.ItemClick("Discard this what-if"); });
    CHECK(!window.driven.session().exists(kept));
    CHECK(window.shows(10));
    CHECK(window.driven.session().exists(moved));
}

TEST_CASE("the palette contains the actions of a view's buttons, even for a hidden tab") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WhatIfWindow window;
    DrivenApp& driven = window.driven;
    window.set_budget(12);
    const RunKey made = driven.session().cursor().run;
    driven.drive([](ImGuiTestContext& c) { c.WindowFocus("//Retention###retention-1"); });
    driven.start_by_palette("what-if: keep");
    CHECK(!driven.session().documents().front()->kept_what_ifs().empty());
    CHECK(driven.session().exists(made));
    driven.start_by_palette("what-if: discard");
    CHECK(!driven.session().exists(made));
    const size_t n_notices = driven.app().notices().size();
    driven.start_by_palette("what-if: keep");  // no what-if is left
    REQUIRE(driven.app().notices().size() == n_notices + 1);
    CHECK(driven.app().notices().back().find("Keep") != std::string::npos);

    driven.start_by_palette("show report");
    driven.drive([](ImGuiTestContext& c) { c.WindowFocus("//Retention###retention-1"); });
    bool is_asked = false;
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsReplaceEnter("export all");
        c.Yield(6);
        is_asked = c.ItemExists("//$FOCUSED/##path");
        c.KeyPress(ImGuiKey_Escape);
    });
    CHECK(is_asked);
}

}  // namespace kvscope::gui::testing
