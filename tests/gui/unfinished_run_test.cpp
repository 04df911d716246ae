#include <catch2/catch.hpp>
#include <fstream>

#include "app/gui/session/unfinished_answers.h"
#include "app/gui/shell/app.h"
#include "tests/trace/sample_trace.h"
#include "trace/part_folder.h"
#include "trace/reader.h"

#ifdef KVSCOPE_WITH_ENGINE
#include "tests/gui/held_steps.h"
#include "tests/gui/session_with_engine.h"
#endif

namespace kvscope::gui::testing {

#ifdef KVSCOPE_WITH_ENGINE

TEST_CASE("an interrupted run continues from its trace alone and gives the complete trace") {
    HeldSession held("unfinished");
    SessionWithEngine& gui = held.gui;
    auto request = gui.request({held.echokv(), "snapkv:window=4", "h2o"}, "16,25%");
    request.options.temperature = 0.5;
    request.options.use_template = false;
    request.options.n_new = 24;
    request.options.ignore_eos = true;
    request.options.isolated = true;  // one run at a time, so that some remain when the first is done
    const fs::path part = request.output.string() + ".part";
    const auto has_run = [&] {
        try {
            return !trace::list_parts(part).runs.empty();
        } catch (const std::exception&) {
            return false;  // not started yet
        }
    };
    gui.engine->run(request);
    held.wait_after(0, has_run);
    held.cancel();
    REQUIRE(gui.errors.empty());
    REQUIRE(fs::exists(part));
    REQUIRE_FALSE(fs::exists(request.output));
    const std::string recipe = trace::Reader(part).recipe_json();

    SessionWithEngine later("later");
    later.known_models = {request.model};
    CHECK(later.engine->go_on(request.output) != 0);
    later.until_idle();
    CHECK(later.errors.empty());
    REQUIRE(fs::exists(request.output));
    const trace::Reader reader(request.output);
    CHECK(reader.complete());
    CHECK(reader.recipe_json() == recipe);
    CHECK(reader.n_runs(0) == 6);
    CHECK(later.session.documents().size() == 1);

    CHECK(later.engine->go_on(later.folder / "nothing.h5") == 0);
    CHECK(later.errors.size() == 1);
}

TEST_CASE("decoded tokens of a stopped run are read from its unfinished trace until it is complete") {
    HeldSession held("answers");
    SessionWithEngine& gui = held.gui;
    auto request = gui.request({held.echokv(), "snapkv:window=4"}, "16");
    request.options.n_new = 24;
    request.options.ignore_eos = true;
    const fs::path part = request.output.string() + ".part";
    held.steps.allow(3);
    gui.engine->run(request);
    // Also without further writes: the first tokens are written immediately.
    held.wait_after(3, [&] { return gui.engine->partial_answers().size() == 3 && fs::exists(part / "answers.json"); });
    held.cancel();
    REQUIRE(fs::exists(part / "answers.json"));

    Tasks tasks([] {});
    Session later(tasks);
    for (const fs::path& path : {part, request.output}) {
        const auto answers = later.open(path).unfinished_answers();
        REQUIRE_FALSE(answers.empty());  // the answer of the full cache may already be in the trace
        for (const UnfinishedAnswer& answer : answers) {
            CHECK(answer.n_tokens > 0);
            CHECK(!answer.text.empty());
        }
        CHECK(answers.back().label == "snapkv:window=4 @ 16");
        // The instance that made the run has the same answers in memory.
        const Document& document = *gui.session.documents().front();
        for (const RunKey& key : document.keys(0)) {
            const RunAt at = gui.session.at(key);
            const auto record = at.reader->run_record(at.prompt, at.run);
            for (const UnfinishedAnswer& answer : answers)
                if (answer.label == record.label) CHECK(answer.text == record.output_text);
        }
        later.close(later.documents().front()->id());
    }

    gui.engine.reset();  // the app that made the run is closed
    SessionWithEngine once_more("answers later");
    once_more.known_models = {request.model};
    CHECK(once_more.engine->go_on(request.output) != 0);
    once_more.until_idle();
    REQUIRE(fs::exists(request.output));
    CHECK_FALSE(fs::exists(part));
    CHECK(once_more.session.documents().front()->unfinished_answers().empty());
}

#endif

TEST_CASE("unreadable unfinished answers are ignored, and the trace can be replaced") {
    const trace::sample::TemporaryFolder folder;
    const fs::path output = folder / "t.h5";
    const fs::path part = output.string() + ".part";
    CHECK(read_unfinished_answers(output).empty());
    write_unfinished_answers(output, {{0, 1, "snapkv", "a", 1, false}});  // this folder does not exist
    CHECK_FALSE(fs::exists(part));
    fs::create_directories(part);
    const std::vector<UnfinishedAnswer> answers = {{0, 1, "snapkv", "a “word”", 1, false}, {1, 2, "h2o", "b", 7, true}};
    write_unfinished_answers(output, answers);
    CHECK(read_unfinished_answers(output) == answers);
    CHECK(read_unfinished_answers(part) == answers);
    for (const char* damaged : {"", "{", "[]", R"({"answers": 7})", R"({"answers": [7, {"prompt": "x"}]})",
                                R"({"kvscope_answers": 9, "answers": []})"}) {
        std::ofstream(part / "answers.json") << damaged;
        CHECK(read_unfinished_answers(output).empty());
    }
    trace::Writer writer(output, trace::sample::recipe, {.force = true, .generator = "unfinished_run_test"});
    writer.write_model(trace::sample::model({}));
    writer.finish();
    CHECK(fs::exists(output));
    CHECK_FALSE(fs::exists(part));
}

}  // namespace kvscope::gui::testing
