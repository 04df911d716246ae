#ifdef KVSCOPE_WITH_ENGINE

#include <catch2/catch.hpp>
#include <fstream>

#include "common/json.h"
#include "tests/gui/driven_form.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("a text file dropped on the window becomes the prompt, and other files are reported") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    std::ofstream(form.folder / "report.md") << "# A report\n\nThe fox signed it.\n";
    std::ofstream(form.folder / "latin.txt") << "Se\xF1or";
    form.driven.app().open_files({form.folder / "report.md"});
    form.driven.settle();
    CHECK(form.state()["context"] == "# A report\n\nThe fox signed it.\n");
    CHECK(form.state()["name"] == "report");
    form.driven.app().open_files({form.folder / "latin.txt"});
    form.driven.settle();
    CHECK(form.state()["name"] == "report");
    REQUIRE(form.driven.app().n_errors() == 1);
    CHECK(form.driven.app().notices().back().find("latin.txt is not UTF-8") != std::string::npos);
    std::ofstream(form.folder / "second.txt") << "Another text.";
    form.drive([&](ImGuiTestContext& c) {
        c.ItemClick("**/File…##prompt");
        c.Yield(2);
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", (form.folder / "second.txt").c_str());
    });
    form.driven.settle();
    CHECK(form.state()["context"] == "Another text.");
}

TEST_CASE("a text file on the command line becomes Run's prompt, also in the first layout") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    std::ofstream(folder / "notes.txt") << "Some notes.";
    AppOptions options;
    options.traces = {folder / "notes.txt"};
    options.layout = "explore";
    DrivenApp driven(options);
    driven.settle();
    CHECK(driven.app().n_errors() == 0);
    REQUIRE(driven.app().focused_view());
    CHECK(driven.app().focused_view()->kind->name == "run");
    nlohmann::json now;
    driven.app().focused_view()->view->save(now);
    CHECK(now["context"] == "Some notes.");
}

}  // namespace kvscope::gui::testing

#endif
