#include <catch2/catch.hpp>

#include "app/gui/view/action_registry.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("keys show and hide the first 27 runs, and the palette any run by its label") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.view = "runs";
    DrivenApp driven(options);
    Session& session = driven.session();
    Document& document = *session.documents()[0];
    while (document.reader()->n_runs(0) < 30)
        document.add_run(0, document.reader()->run_record(0, 1), document.id_of(0, 1));
    driven.settle();
    const auto runs = session.all_runs();
    const auto press = [&](ImGuiKeyChord key) { driven.drive([&](ImGuiTestContext& c) { c.KeyPress(key); }); };
    for (const int number : {1, 9, 10, 14, 18, 19, 27}) {
        CAPTURE(number);
        const RunKey run = runs[static_cast<size_t>(number) - 1];
        const auto n_hidden = document.hidden.size();
        CHECK(session.is_visible(run));
        press(run_visibility_key(number));
        CHECK(!session.is_visible(run));
        CHECK(document.hidden.size() == n_hidden + 1);
    }
    press(run_visibility_key(14));
    CHECK(session.is_visible(runs[13]));
    CHECK(run_visibility_key(28) == 0);
    CHECK(shortcut_text(run_visibility_key(10)) == "Shift+1");
    CHECK(shortcut_text(run_visibility_key(27)) == "Ctrl+9");
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsAppend(("hide run " + session.look(runs[4]).label).c_str());
        c.Yield(2);
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(2);
    });
    CHECK(document.hidden.size() == 7);
}

}  // namespace kvscope::gui::testing
