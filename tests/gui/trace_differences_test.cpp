#include <catch2/catch.hpp>
#include <utility>

#include "app/gui/figure/figure_job.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/run_places.h"
#include "tests/gui/two_traces.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

namespace fs = std::filesystem;

TEST_CASE("without A and B, two traces of one prompt are compared by a run and its pair") {
    const TwoTraces files;
    const fs::path again = files.folder / "again.h5";
    fs::copy_file(files.first, again);
    Tasks tasks([] {});
    Session session(tasks);
    const int first = session.open(files.first).id();
    const RunKey snapkv = run_at(session, first, 0, 1);
    CHECK(session.compared() == std::pair{snapkv, run_at(session, first, 0, 2)});
    const int second = session.open(again).id();
    CHECK(session.compared() == std::pair{run_at(session, second, 0, 1), snapkv});
    session.set_visible(run_at(session, second, 0, 1), false);
    CHECK(session.compared() == std::pair{run_at(session, second, 0, 2), run_at(session, first, 0, 2)});
    session.pair.a = run_at(session, first, 0, 3);
    CHECK(session.compared() == std::pair{run_at(session, first, 0, 3), snapkv});

    Session unlike(tasks);
    const int shorter = unlike.open(files.first).id();
    unlike.open(files.second);
    CHECK(unlike.compared() == std::pair{run_at(unlike, shorter, 0, 1), run_at(unlike, shorter, 0, 2)});
}

TEST_CASE("head divergence shows two traces on one scale, or A − B if chosen") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("head_divergence"));
    driven.settle();
    Session& session = driven.session();
    const analysis::Figure both = shown_by(driven);
    REQUIRE(both.panels.size() == 6);
    const auto choose = [&](const char* traces) {
        driven.drive([&](ImGuiTestContext& context) {
            context.SetRef(DrivenApp::window_of("Head divergence###head_divergence").c_str());
            context.ComboClick((std::string("##traces head_divergence/") + traces).c_str());
        });
    };
    session.pair.a = run_called(session, "one.h5: snapkv 16");
    session.pair.b = run_called(session, "two.h5: snapkv 16");
    driven.settle();
    choose("A − B");
    driven.settle();
    const analysis::Figure difference = shown_by(driven);
    REQUIRE(difference.panels.size() == 3);
    for (size_t panel = 0; panel < 3; ++panel) {
        for (size_t i = 0; i < map_of(difference, panel).values.size(); ++i) {
            CHECK(map_of(difference, panel).values[i] ==
                  map_of(both, panel).values[i] - map_of(both, panel + 3).values[i]);
        }
    }
    choose("the selected trace");
    driven.settle();
    CHECK(map_of(shown_by(driven), 0).values == map_of(both, 0).values);
    CHECK(driven.app().notices().empty());
}

TEST_CASE("a difference is not shown with another pair's names while the other difference is computed") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    const auto [view, waiting] =
        GENERATE(table<const char*, const char*>({{"budgets", "counting what each head keeps"},
                                                  {"head_divergence", "reading the divergences"},
                                                  {"query_similarity", "reading the queries"}}));
    CAPTURE(view);
    DrivenApp driven(files.alone_in_the_window(view));
    driven.settle();
    Session& session = driven.session();
    session.pair.a = run_at(session, session.documents().at(0)->id(), 0, 1);
    session.pair.b = run_at(session, session.documents().at(1)->id(), 0, 1);
    driven.app().views().at(0)->view->load({{"traces", "difference"}});
    driven.settle();
    const std::string shown = waiting;
    REQUIRE(driven.shown_text().find(shown) == std::string::npos);
    {
        const trace::h5::Guard disk_is_busy;
        session.open(files.first);  // discards everything that was read
        session.open(files.second);
        std::swap(session.pair.a, session.pair.b);
        driven.draw_until([] { return false; }, 3);
        CHECK(driven.shown_text().find(shown) != std::string::npos);
    }
    driven.settle();
    CHECK(driven.shown_text().find(shown) == std::string::npos);
}

}  // namespace kvscope::gui::testing
