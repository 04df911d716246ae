#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "app/gui/figure/figure_job.h"
#include "app/gui/session/session.h"
#include "app/gui/session/session_state.h"
#include "app/gui/view/run_label.h"
#include "common/json.h"
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

TEST_CASE("a trace has its badge in place of a file name that is too long") {
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
    CHECK(trace_badge_of(document) == "2");
    CHECK(trace_title(session, document) == "[2]");
    CHECK(trace_title(session, *session.documents().at(0)) == "[1] one.h5");
    driven.drive([&](ImGuiTestContext&) {
        const RunLook look = session.look(document.key_of(0, 1));
        const float width = ImGui::CalcTextSize(look.run.c_str()).x + 3 * ImGui::GetFontSize();
        CHECK(label_that_fits(look, width) == "[2] " + look.run);
        CHECK(ImGui::CalcTextSize(label_that_fits(look, width / 2).c_str()).x <= width / 2);
        CHECK(label_that_fits(session.look(session.documents().at(0)->key_of(0, 1)), 1000) == "[1] one.h5: snapkv 16");
    });
}

TEST_CASE("a badge belongs to one trace of the session, whatever other traces are closed and opened") {
    const trace::sample::TemporaryFolder folder;
    for (const char* name : {"one.h5", "two.h5", "three.h5"}) trace::sample::write(folder / name);
    Tasks tasks{[] {}};
    Session session(tasks);
    const auto open = [&](const char* name) { return trace_badge_of(session.open(folder / name)); };
    const auto close = [&](const char* name) { session.close(session.open(folder / name).id()); };
    CHECK(open("one.h5") == "1");
    CHECK(open("two.h5") == "2");
    close("one.h5");
    CHECK(open("two.h5") == "2");
    CHECK(open("three.h5") == "3");
    close("three.h5");
    CHECK(open("one.h5") == "4");
    const nlohmann::json saved = session_state(session, {"two.h5", "one.h5"});

    SECTION("a new session has a workspace's badges") {
        Session later(tasks);
        CHECK(restore_session(later, saved, folder.path()).empty());
        REQUIRE(later.documents().size() == 2);
        CHECK(trace_badge_of(*later.documents()[0]) == "2");
        CHECK(trace_badge_of(*later.documents()[1]) == "4");
        CHECK(trace_badge_of(later.open(folder / "three.h5")) == "5");
    }
    SECTION("a workspace's badge that another trace has had is not reused") {
        Session other(tasks);
        other.open(folder / "three.h5");
        other.close(other.open(folder / "one.h5").id());
        CHECK(restore_session(other, saved, folder.path()).empty());
        REQUIRE(other.documents().size() == 3);
        CHECK(trace_badge_of(*other.documents()[1]) == "3");  // two.h5, because 2 was the badge of one.h5
        CHECK(trace_badge_of(*other.documents()[2]) == "4");
    }
    SECTION("invalid badges of a workspace are replaced") {
        nlohmann::json damaged = saved;
        damaged["traces"][0]["badge"] = -7;
        damaged["traces"][1]["badge"] = 2'000'000'000;
        Session later(tasks);
        CHECK(restore_session(later, damaged, folder.path()).empty());
        REQUIRE(later.documents().size() == 2);
        CHECK(trace_badge_of(*later.documents()[0]) == "1");
        CHECK(trace_badge_of(*later.documents()[1]) == "2");
    }
}

TEST_CASE("every badge in a view's titles, legends and choices opens the trace's menu") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces traces;
    struct Shown {
        const char* view;
        bool of_both;  ///< otherwise only the trace of the selected run
    };
    const Shown shown = GENERATE(values<Shown>({{"runs", true},
                                                {"retention", true},
                                                {"prompt", true},
                                                {"answers", true},
                                                {"merging", true},
                                                {"coverage", true},
                                                {"budgets", true},
                                                {"spectrum", true},
                                                {"query_similarity", true},
                                                {"scatter", true},
                                                {"cost", true},
                                                {"difference", true},
                                                {"trace", false},
                                                {"what_if", false},
                                                {"inspector", false}}));
    CAPTURE(shown.view);
    DrivenApp driven(traces.alone_in_the_window(shown.view));
    driven.settle();
    Session& session = driven.session();
    for (const auto& document : session.documents())
        for (const RunKey& key : document->keys(0)) session.set_visible(key, true);
    const RunKey first = session.documents()[0]->key_of(0, 1);
    session.pair.a = first;
    session.pair.b = session.documents()[1]->key_of(0, 1);
    Cursor cursor;
    cursor.run = first;
    cursor.layer = 0;
    cursor.first_token = cursor.last_token = 5;
    session.selection.set(cursor);
    driven.settle();
    for (const char* badge : {"1##badge", "2##badge"}) {
        if (!shown.of_both && badge[0] == '2') continue;
        for (const ImGuiMouseButton button : {ImGuiMouseButton_Left, ImGuiMouseButton_Right}) {
            CAPTURE(badge, button);
            driven.drive([&](ImGuiTestContext& c) {
                c.ItemClick(fmt::format("//{}-1/**/{}", shown.view, badge).c_str(), button);
                c.Yield(3);
                c.SetRef("//$FOCUSED");
                for (const char* entry : {"Hide", "Show only this", "Show the file", "Close"}) {
                    CAPTURE(entry);
                    CHECK(c.ItemExists(entry));
                }
                c.KeyPress(ImGuiKey_Escape);
                c.Yield(2);
            });
        }
    }
}

TEST_CASE("exported figures of several traces name the files and show no badges") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces traces;
    DrivenApp driven(traces.alone_in_the_window("coverage"));
    driven.settle();
    const FigureRequest request = figure_request_for_shown_runs(driven.session(), "coverage", true, Traces::all);
    const auto labels_of = [&](FigureJob::Names names) {
        std::string labels;
        const analysis::Figure figure = FigureJob(driven.session(), request, names).figure();
        for (const auto& entry : figure.legend) labels += entry.label + "\n";
        for (const auto& panel : figure.panels) labels += panel.title + "\n";
        return labels;
    };
    using Catch::Matchers::Contains;
    CHECK_THAT(labels_of(FigureJob::Names::in_titles), Contains("[1] one.h5") && Contains("[2] two.h5"));
    CHECK_THAT(labels_of(FigureJob::Names::in_full), Contains("one.h5") && Contains("two.h5") && !Contains("["));
}

}  // namespace kvscope::gui::testing
