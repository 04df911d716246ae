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

TEST_CASE("by mouse: files and folders are added to a list, which replaces the text, and removed") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    fs::create_directories(form.folder / "in/more");
    for (const char* name : {"in/a.txt", "in/b.md", "in/c.txt", "in/more/d.txt"})
        std::ofstream(form.folder / name) << "The fox jumps over " << name;
    std::ofstream(form.folder / "own.jsonl") << R"({"context": "Rain falls.", "question": "Where?"})"
                                             << "\n{}\n";
    form.drive([&](ImGuiTestContext& c) {
        c.ItemClick("**/Add prompts…");
        c.Yield(2);
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", ((form.folder / "in").string() + "/").c_str());
        c.Yield(2);
        c.ItemClick("**/a.txt");
        c.KeyDown(ImGuiMod_Shift);
        c.ItemClick("**/c.txt");
        c.KeyUp(ImGuiMod_Shift);
        c.KeyDown(ImGuiMod_Ctrl);
        c.ItemClick("**/b.md");
        c.ItemClick("**/more\\/");
        c.KeyUp(ImGuiMod_Ctrl);
        c.Yield(2);
        c.ItemClick("**/Add 3");
    });
    form.driven.settle();
    const auto path = [&](const char* name) { return (form.folder / name).string(); };
    CHECK(form.state()["sources"] == std::vector{path("in/a.txt"), path("in/c.txt"), path("in/more")});
    form.driven.app().open_files({form.folder / "in/b.md"});
    form.driven.app().open_files({form.folder / "own.jsonl", form.folder / "in/a.txt"});
    form.driven.settle();
    CHECK(form.driven.app().n_errors() == 0);
    REQUIRE(form.state()["sources"].size() == 5);
    const auto& engine = *form.driven.app().engine();
    REQUIRE(form.driven.draw_until(
        [&] { return form.driven.shown_text().find("longest prompt: ") != std::string::npos; }, patience));
    CHECK(!engine.status().busy());
    std::string shown = form.driven.shown_text();
    CHECK_THAT(shown, Catch::Contains("own.jsonl:2: expected the field \"context\""));
    CHECK_THAT(shown, Catch::Contains("2 runs including the full cache, on 5 prompts (10 runs in total)"));
    CHECK(!form.state()["context"].get<std::string>().empty());

    form.drive([&](ImGuiTestContext& c) { c.ItemClick("**/$$1/×##source"); });
    CHECK(form.state()["sources"].size() == 4);
    fs::remove_all(form.folder / "in/more");
    form.driven.settle();
    CHECK_THAT(form.driven.shown_text(),
               Catch::Contains("more does not exist: restore it, or remove it from the list"));
    bool refuses = false;
    form.drive([&](ImGuiTestContext& c) {
        refuses = (c.ItemInfo("//run-1/Run").ItemFlags & ImGuiItemFlags_Disabled) != 0;
        c.ItemClick("**/Remove all");
    });
    CHECK(refuses);
    form.driven.settle();
    CHECK(form.state()["sources"].empty());
    CHECK_THAT(form.state()["context"].get<std::string>(), Catch::Contains("quick brown fox"));
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
