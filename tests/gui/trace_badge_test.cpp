#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "app/gui/session/trace_names.h"
#include "app/gui/view/run_label.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/two_traces.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("the badge of a trace hides it, shows it alone, shows its file and closes it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces traces;
    DrivenApp driven(traces.alone_in_the_window("runs"));
    driven.settle();
    Session& session = driven.session();
    const int first = session.documents()[0]->id(), second = session.documents()[1]->id();
    const auto choose = [&](int document, const char* entry) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//runs-1");
            const std::string badge = document == first ? "1##badge" : "2##badge";
            c.ItemClick(("**/" + badge).c_str());
            c.Yield(2);
            c.SetRef("//$FOCUSED");
            c.ItemClick(entry);
            c.Yield(2);
        });
        driven.settle();
    };
    const auto n_shown = [&](int document) {
        int n = 0;
        for (const RunKey& run : session.all_runs()) n += run.document == document && session.is_visible(run);
        return n;
    };
    REQUIRE(n_shown(first) > 0);
    choose(first, "Hide");
    CHECK(n_shown(first) == 0);
    CHECK(n_shown(second) > 0);
    choose(first, "Show");
    CHECK(n_shown(first) > 0);
    choose(second, "Show only this");
    CHECK(n_shown(first) == 0);
    CHECK(n_shown(second) > 0);
    choose(first, "Show the file");
    const auto& open = driven.app().views();
    CHECK(std::any_of(open.begin(), open.end(), [](const auto& view) { return view->kind->name == "trace"; }));
    driven.app().show_view(*find_view_kind("runs"));
    driven.settle();
    choose(first, "Close");
    REQUIRE(session.documents().size() == 1);
    CHECK(session.documents()[0]->id() == second);
}

TEST_CASE("a trace with a long file name is called by its badge where there is no room for the name") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    const std::filesystem::path other = folder / "one.h5";
    const std::filesystem::path longer = folder / "what somebody called this trace with great care, at length.h5";
    trace::sample::write(other);
    trace::sample::write(longer);
    AppOptions options;
    options.traces = {other, longer};
    DrivenApp driven(options);
    driven.settle();
    const Session& session = driven.session();
    const Document& document = *session.documents().at(1);
    CHECK(badge_of(session, document) == "2");
    CHECK(title_of(session, document) == "[2]");
    CHECK(title_of(session, *session.documents().at(0)) == "one.h5");
    driven.drive([&](ImGuiTestContext&) {
        const RunLook look = session.look(document.key_of(0, 1));
        const float width = ImGui::CalcTextSize(look.run.c_str()).x + 3 * ImGui::GetFontSize();
        CHECK(label_that_fits(look, width) == "[2] " + look.run);
        CHECK(ImGui::CalcTextSize(label_that_fits(look, width / 2).c_str()).x <= width / 2);
    });
}

}  // namespace kvscope::gui::testing
