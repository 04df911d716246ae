#include <catch2/catch.hpp>

#include "app/gui/figure/figure_job.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("a run is renamed by right click or palette in all views, and undo restores its name") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    const RunKey key = session.all_runs().at(1);
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//runs-1");
        c.MouseMove(("**/" + key.text() + "/snapkv 16").c_str());
        c.MouseClick(ImGuiMouseButton_Right);
        c.Yield(2);
        c.ItemClick("//$FOCUSED/Rename…");
        c.Yield(2);
        c.KeyCharsReplaceEnter("SnapKV, B = 16");
        c.Yield(2);
        CHECK(c.ItemExists(("//runs-1/**/" + key.text() + "/SnapKV, B = 16").c_str()));
    });
    driven.settle();
    CHECK(session.look(key).label == "SnapKV, B = 16");
    const FigureRequest request = figure_request_for_shown_runs(session, "retention", true);
    const analysis::Figure figure = FigureJob(session, request).figure();
    CHECK(figure.panels.front().title == "SnapKV, B = 16");
    driven.start_by_palette("undo");
    driven.settle();
    CHECK(session.look(key).label == "snapkv 16");
    driven.start_by_palette("redo");
    driven.settle();
    CHECK(session.look(key).label == "SnapKV, B = 16");

    session.selection.select_run(key);
    // A single drive, because each drive begins without popups.
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsReplaceEnter("rename the selected");
        c.Yield(3);
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
        c.KeyPress(ImGuiKey_Delete);
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(2);
    });
    driven.settle();
    CHECK(session.look(key).label == "snapkv 16");
}

}  // namespace kvscope::gui::testing
