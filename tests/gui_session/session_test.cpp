#include "app/gui/session/session.h"

#include <catch2/catch.hpp>

#include "app/gui/session/session_state.h"
#include "common/json.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;
namespace sample = trace::sample;

void write_trace(const fs::path& path, const std::string& recipe) {
    const sample::Options options;
    trace::Writer writer(path, recipe, {.force = true, .generator = "session_test"});
    writer.write_model(sample::model(options));
    writer.write_prompt(0, sample::prompt(options, 0));
    writer.finish();
}

}  // namespace

TEST_CASE("an unsaved note is saved when another trace replaces the file") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "n.h5";
    write_trace(path, sample::recipe);
    Tasks tasks{[] {}};
    Session session{tasks};
    Document& document = session.open(path);
    const int id = document.id();
    document.write_note(0, 1, 2, "important");
    REQUIRE(document.annotations_changed);
    write_trace(path, R"({"other": 1})");
    CHECK(session.open(path).id() != id);
    CHECK(fs::exists(path.string() + ".notes.json"));
}

TEST_CASE("an invalid saved session is reported, and its valid parts are opened") {
    const sample::TemporaryFolder folder;
    write_trace(folder / "n.h5", sample::recipe);
    Tasks tasks{[] {}};
    Session session{tasks};
    for (const nlohmann::json& state : {nlohmann::json(5), nlohmann::json::array({1}), nlohmann::json("x")}) {
        CHECK(restore_session(session, state, folder.path()).size() == 1);
        CHECK(session.documents().empty());
    }
    CHECK(restore_session(session, {{"traces", 7}}, folder.path()).size() == 2);  // also: no selection
    const auto problems = restore_session(
        session, {{"traces", {{{"path", "n.h5"}}, {{"path", "gone.h5"}}}}, {"selection", 3}}, folder.path());
    CHECK(problems.size() == 2);
    CHECK(session.documents().size() == 1);
}

TEST_CASE("showing another prompt keeps the selected run, A and B") {
    const sample::TemporaryFolder folder;
    sample::Options questions;
    questions.n_questions = 3;
    sample::write(folder / "questions.h5", questions);
    Tasks tasks([] {});
    Session session(tasks);
    Document& document = session.open(folder / "questions.h5");
    session.selection.select_run(document.key_of(0, 2));
    session.selection.select_layer(1);
    session.selection.select_token(4);
    session.pair.a = document.key_of(0, 1);
    session.pair.b = document.key_of(0, 3);
    session.show_prompt(document, 2);
    CHECK(document.prompt == 2);
    CHECK(session.cursor().run == document.key_of(2, 2));
    CHECK(session.cursor().layer == 1);
    CHECK(session.cursor().first_token == 4);
    CHECK(session.pair.a == document.key_of(2, 1));
    CHECK(session.pair.b == document.key_of(2, 3));
}

TEST_CASE("a trace with many runs opens with only the runs of the largest budget that drops something") {
    const sample::TemporaryFolder folder;
    const bool drops_any = GENERATE(true, false);
    const std::vector<int64_t> budgets =
        drops_any ? std::vector<int64_t>{12, 24, 60} : std::vector<int64_t>{48, 60, 70};
    const sample::Options options;
    trace::Writer writer(folder / "many.h5", sample::recipe, {.force = true, .generator = "session_test"});
    const trace::PromptRecord prompt = sample::prompt(options, 0);
    REQUIRE(prompt.visible_tokens() == 48);
    writer.write_model(sample::model(options));
    writer.write_prompt(0, prompt);
    int number = 0;
    for (const char* policy : {"snapkv", "h2o", "laq"})
        for (const int64_t budget : budgets)
            writer.write_run(0, number++, sample::selecting_run(options, prompt, policy, budget));
    writer.finish();
    Tasks tasks([] {});
    Session session(tasks);
    session.open(folder / "many.h5");
    REQUIRE(session.visible_runs().size() == 3);
    for (const RunKey& run : session.visible_runs()) CHECK(session.attributes(run).budget == (drops_any ? 24 : 70));
}

TEST_CASE("the focus is on a trace with shown runs") {
    const sample::TemporaryFolder folder;
    trace::Writer writer(folder / "scores.h5", sample::recipe, {.force = true, .generator = "session_test"});
    writer.write_model(sample::model({}));
    writer.write_results("niah", 0, sample::results());
    writer.finish();
    sample::write(folder / "one.h5");
    sample::write(folder / "two.h5");
    Tasks tasks{[] {}};
    Session session{tasks};
    session.open(folder / "scores.h5");
    CHECK(session.focus()->name() == "scores.h5");
    session.open(folder / "one.h5");
    session.open(folder / "two.h5");
    session.selection.set({});
    CHECK(session.focus()->name() == "one.h5");
    session.selection.select_run(session.documents()[2]->key_of(0, 1));
    CHECK(session.focus()->name() == "two.h5");
    for (const RunKey& run : session.all_runs())
        if (run.document == session.documents()[2]->id()) session.set_visible(run, false);
    CHECK(session.focus()->name() == "one.h5");
    for (const RunKey& run : session.all_runs()) session.set_visible(run, false);
    CHECK(session.focus()->name() == "two.h5");
}

}  // namespace kvscope::gui
