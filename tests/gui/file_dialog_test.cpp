#include "app/gui/view/file_dialog.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "app/gui/figure/export_dialog.h"
#ifdef KVSCOPE_WITH_ENGINE
#include "tests/gui/driven_form.h"
#endif
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

namespace fs = std::filesystem;

TEST_CASE("all figures are written to an existing folder and replace files only after confirmation") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const fs::path folder = sample.folder / "paper";
    fs::create_directory(folder);
    std::ofstream(folder / "text.tex") << "mine";
    AppOptions options;
    options.traces = {sample.path};
    options.layout = "report";
    DrivenApp driven(options);
    const auto ask_for = [](ImGuiTestContext& c, const fs::path& path) {
        c.ItemClick((DrivenApp::window_of("Report###report") + "/**/Export all…##report").c_str());
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", path.c_str());
        c.Yield(2);
    };
    const fs::path file = sample.folder / "a-file";
    std::ofstream(file) << "no folder";
    driven.drive([&](ImGuiTestContext& c) { ask_for(c, folder); });
    REQUIRE(driven.draw_until([&] { return !driven.app().notices().empty(); }, 4000));
    const auto n_files = std::distance(fs::directory_iterator(folder), fs::directory_iterator());
    CHECK(n_files > 3);
    CHECK(fs::file_size(folder / "text.tex") == 4);
    const size_t n_notices = driven.app().notices().size();
    driven.drive([&](ImGuiTestContext& c) {
        ask_for(c, file);  // refused: the dialog stays open
        c.ItemInputValue("**/##path", folder.c_str());
        c.Yield(2);
        IM_CHECK(c.ItemExists("**/Replace"));  // nothing is written before
        c.ItemClick("**/Cancel");
    });
    driven.settle();
    CHECK(driven.app().notices().size() == n_notices);
}

#ifdef KVSCOPE_WITH_ENGINE
TEST_CASE("a policy's file dialog lists files of its type or all files, and sets the parameter") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    std::ofstream(form.folder / "IMPORTANCE.JSON") << "{}";
    std::ofstream(form.folder / "notes.txt") << "words";
    form.fill(small_form(form.folder / "run.h5"));
    form.drive([&](ImGuiTestContext& c) {
        c.SetRef(c.WindowInfo("//run-1/form").ID);
        c.ScrollToItemY("**/###headkv");
        c.ItemOpen("**/###headkv");
        c.Yield(2);
        c.ItemClick("**/importance/Browse…");
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", (form.folder.path().string() + "/").c_str());
        c.Yield(2);
        CHECK(c.ItemExists("**/IMPORTANCE.JSON"));
        CHECK(!c.ItemExists("**/notes.txt"));
        c.ItemClick("**/all files");
        c.Yield(2);
        CHECK(c.ItemExists("**/notes.txt"));
        c.ItemClick("**/all files");
        c.Yield(2);
        CHECK(!c.ItemExists("**/notes.txt"));
        c.ItemClick("**/IMPORTANCE.JSON");
        c.ItemClick("**/Open");
    });
    form.driven.settle();
    RunForm now;
    now.from_json(form.state());
    for (const PolicyRow& row : now.rows)
        if (row.spec.definition->name == "headkv")
            CHECK(row.spec.values.text("importance") == (form.folder / "IMPORTANCE.JSON").string());
}
#endif

TEST_CASE("the file dialog works with the keyboard alone and reports errors") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    fs::create_directory(sample.folder / "deeper");
    fs::copy_file(sample.path, sample.folder / "sample10.h5");
    fs::copy_file(sample.path, sample.folder / "sample9.h5");
    DrivenApp driven({});
    driven.drive([&](ImGuiTestContext& c) {
        const auto is_open = [&] { return c.ItemExists("//$FOCUSED/##path"); };
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
        c.Yield(2);
        c.KeyPress(ImGuiKey_Enter);  // an empty name
        c.Yield(2);
        IM_CHECK(is_open());
        c.KeyCharsReplaceEnter((sample.path.parent_path() / "nowhere").c_str());
        c.Yield(2);
        IM_CHECK(is_open());
        c.KeyCharsReplaceEnter((sample.path.parent_path().string() + "/deeper/").c_str());
        c.Yield(2);
        c.ItemClick("//$FOCUSED/Up");
        c.Yield(2);
        // deeper/, sample.h5, sample9.h5, sample10.h5
        for (int i = 0; i < 3; ++i) c.KeyPress(ImGuiKey_DownArrow);
        c.Yield(2);
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(2);
        IM_CHECK(!is_open());
    });
    REQUIRE(driven.session().documents().size() == 1);
    CHECK(driven.session().documents().front()->name() == "sample9.h5");
}

TEST_CASE("the dialog refuses an extension that no figure has, and keeps the typed name") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const bool is_of_report = GENERATE(true, false);
    AppOptions options = explore(sample);
    if (is_of_report) options.layout = "report";
    DrivenApp driven(options);
    driven.settle();
    const fs::path wrong = sample.folder / "ret.docx", right = sample.folder / "ret.svg";
    driven.drive([&](ImGuiTestContext& c) {
        if (is_of_report) {
            c.ItemClick((DrivenApp::window_of("Report###report") + "/**/Export…##report").c_str());
        } else {
            c.WindowFocus("//Retention###retention-1");
            c.KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E);
        }
        c.Yield(2);
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", wrong.c_str());
        c.Yield(3);
        IM_CHECK(c.ItemExists("**/##path"));  // the dialog is still open
        c.ItemInputValue("**/##path", right.c_str());
    });
    CHECK(driven.draw_until([&] { return fs::exists(right); }, 4000));
    CHECK(!fs::exists(wrong));
    const auto& told = driven.app().notices();
    CHECK(
        std::none_of(told.begin(), told.end(), [](const auto& one) { return one.find("docx") != std::string::npos; }));
    CHECK(problem_with_ending(wrong, true).find("svg") != std::string::npos);
    CHECK(problem_with_ending("t.pdf", false).find(".csv") != std::string::npos);
    CHECK(problem_with_ending("t.tsv", false).empty());
}

}  // namespace kvscope::gui::testing
