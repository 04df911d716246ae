#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "app/gui/view/action_registry.h"
#include "app/gui/view/file_dialog.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("a view's dialog closes with the view, without an answer") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const std::filesystem::path workspace = sample.folder / "other.kvscope";
    AppOptions options = explore(sample);
    options.layout = "report";
    setenv("XDG_STATE_HOME", (sample.folder / "state").c_str(), 1);
    DrivenApp driven(options);
    driven.settle();
    driven.app().save_workspace(workspace);
    driven.app().tasks().wait();
    const bool is_dropped = GENERATE(true, false);
    std::string window = DrivenApp::window_of("Report###report");
    std::string button = "/**/Export…##report";
#ifdef KVSCOPE_WITH_ENGINE
    button = GENERATE("/**/Export…##report", "Browse…##output", "Browse…##model", "File…##prompt");
    if (button[0] != '/') {
        window.clear();
        driven.app().show_view(*find_view_kind("run"));
        driven.settle();
    }
#endif
    CAPTURE(button, is_dropped);
    bool is_asked = false;
    bool is_asked_after = false;
    driven.drive([&](ImGuiTestContext& c) {
        const auto asks = [&] { return c.ItemExists("//$FOCUSED/##path"); };
        if (window.empty()) {
            if (button.ends_with("##model") || button.ends_with("##prompt"))
                DrivenApp::refer_to_prompt_of_run(c);
            else
                c.SetRef(c.WindowInfo("//run-1/form").ID);
        }
        c.ItemClick((window + button).c_str());
        c.Yield(3);
        is_asked = asks();
        if (is_dropped)
            driven.app().open_files({workspace}), driven.app().tasks().wait();
        else
            driven.app().apply_layout("compare");  // this layout has neither view
        c.Yield(6);
        is_asked_after = asks();
    });
    CHECK(is_asked);
    CHECK(!is_asked_after);
    unsetenv("XDG_STATE_HOME");
    CHECK(driven.app().n_errors() == 0);
}

TEST_CASE("an entry of the palette does nothing once its view is closed") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const ViewKind* run = find_view_kind("run");
    if (!run) KVSCOPE_SKIP("this build has no engine");
    DrivenApp driven({});
    driven.app().show_view(*run);
    driven.settle();
    std::vector<Action> entries;
    int n_told = 0;
    for (const auto& open : driven.app().views()) {
        if (open->kind == run) open->view->add_to_palette(entries, [&](const std::string&, bool) { ++n_told; });
    }
    REQUIRE(!entries.empty());
    driven.app().restore_layout({{"views", nlohmann::json::array()}});
    REQUIRE(driven.app().views().empty());
    for (const Action& entry : entries) {
        CHECK(!entry.enabled());
        entry.run();
    }
    CHECK(n_told == 0);
}

}  // namespace kvscope::gui::testing
