#ifdef KVSCOPE_WITH_ENGINE

#include <catch2/catch.hpp>
#include <set>

#include "app/gui/session/annotations.h"
#include "app/gui/session/session_state.h"
#include "common/json.h"
#include "tests/gui/session_with_engine.h"
#include "trace/hdf5/hdf5.h"
#include "trace/records/schema.h"

namespace kvscope::gui {
namespace {

const std::string question = "And who is thirsty?";

RunRequest request(const testing::SessionWithEngine& gui) {
    auto wanted = gui.request({"snapkv:window=8", "h2o"}, "16,32");
    wanted.questions = {"Who jumps?"};
    wanted.options.query_aware = false;
    return wanted;
}

/// Answers to the question for all runs of the first document, in order.
std::vector<std::string> answers_of_all_runs(testing::SessionWithEngine& gui) {
    Document& document = *gui.session.documents().front();
    std::vector<RunKey> runs;
    for (int run = 0; run < document.reader()->n_runs(0); ++run) runs.push_back(document.key_of(0, run));
    const size_t before = document.further_answers().size();
    gui.engine->ask(runs, question);
    gui.until_idle();
    std::vector<std::string> texts;
    REQUIRE(document.further_answers().size() == before + runs.size());
    for (size_t i = before; i < document.further_answers().size(); ++i) {
        const FurtherAnswer& answer = document.further_answers()[i];
        CAPTURE(answer.run, answer.error);
        CHECK(answer.finished);
        CHECK(answer.error.empty());
        CHECK(answer.remark.empty());
        CHECK(answer.question == question);
        CHECK(document.run_called(answer.prompt, answer.run_number, answer.run) == runs[i - before].run);
        texts.push_back(answer.text);
    }
    return texts;
}

void write_into_recipe(const std::filesystem::path& path, const char* key, const char* value) {
    namespace h5 = trace::h5;
    auto recipe = nlohmann::ordered_json::parse(trace::Reader(path).recipe_json());
    recipe[key] = value;
    const h5::Guard guard;
    const h5::Handle file(h5::checked(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open for a test"), H5Fclose);
    REQUIRE(H5Adelete(file.get(), "recipe_json") >= 0);
    h5::write_attribute(file.get(), "recipe_json", recipe.dump());
}

}  // namespace

TEST_CASE("caches of an opened trace answer like those of its job, and answers stay after the window closes") {
    std::vector<std::string> expected;
    std::filesystem::path trace;
    testing::SessionWithEngine first;
    first.engine->run(request(first));
    first.until_idle();
    REQUIRE(first.errors.empty());
    trace = first.session.documents().front()->path();
    expected = answers_of_all_runs(first);
    CHECK(std::set<std::string>(expected.begin(), expected.end()).size() > 1);
    save_annotations(*first.session.documents().front(), nlohmann::json());

    // Another instance, whose engine has loaded another model or none.
    testing::SessionWithEngine second{"another"};
    second.known_models = {"/nowhere", second.request({}, "").model};
    Document& document = second.session.open(trace);
    load_annotations(document);
    REQUIRE(document.further_answers().size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        const FurtherAnswer& answer = document.further_answers()[i];
        CHECK(answer.text == expected[i]);
        CHECK(document.run_called(answer.prompt, answer.run_number, answer.run) ==
              document.id_of(0, static_cast<int>(i)));
    }
    CHECK(!second.engine->has_cache(document.key_of(0, 1)));
    CHECK(answers_of_all_runs(second) == expected);
    CHECK(second.errors.empty());
    CHECK(second.engine->has_cache(document.key_of(0, 1)));
    CHECK(document.annotations_changed);

    document.remove_further_answer(document.further_answers().front().id);
    CHECK(document.further_answers().size() == 2 * expected.size() - 1);
}

TEST_CASE("caches are freed with their model, and runs answer the same after another model was loaded") {
    testing::SessionWithEngine gui;
    gui.known_models = {gui.request({}, "").model};
    gui.engine->run(request(gui));
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    const auto expected = answers_of_all_runs(gui);
    gui.engine->load_model(std::filesystem::path(KVSCOPE_TEST_DATA) / "models" / "llama2-mha");
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    CHECK_FALSE(gui.engine->has_cache(gui.session.documents().front()->key_of(0, 1)));
    CHECK(answers_of_all_runs(gui) == expected);
}

TEST_CASE("a missing device does not unload the model") {
    testing::SessionWithEngine gui;
    auto wanted = gui.request({"random"}, "32");
    gui.engine->run(wanted);
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    wanted.options.device = "cuda:63";
    wanted.output = gui.folder / "two.h5";
    gui.engine->run(wanted);
    gui.until_idle();
    CHECK_THAT(gui.engine->status().error, Catch::StartsWith("--device cuda:63: "));
    CHECK(gui.engine->status().model_path == wanted.model);
    wanted.options.device = "cpu";
    gui.engine->run(wanted);
    gui.until_idle();
    CHECK(gui.engine->status().error == "");
}

TEST_CASE("a trace of a missing device answers questions on the processor, which is reported once") {
    testing::SessionWithEngine first;
    first.engine->run(request(first));
    first.until_idle();
    const auto expected = answers_of_all_runs(first);
    const std::filesystem::path trace = first.folder / "card.h5";
    std::filesystem::copy_file(first.session.documents().front()->path(), trace);
    write_into_recipe(trace, "device", "cuda:63");

    testing::SessionWithEngine second{"another"};
    second.known_models = {second.request({}, "").model};
    Document& document = second.session.open(trace);
    CHECK(answers_of_all_runs(second) == expected);
    CHECK(answers_of_all_runs(second) == expected);
    second.engine->repeat_prefill(document.id(), 0, {});
    second.until_idle();
    CHECK(second.engine->prefill(document.id(), 0));
    CHECK(second.errors.empty());
    REQUIRE(second.notices.size() == 1);
    CHECK_THAT(second.notices[0], Catch::StartsWith("card.h5 was made on cuda:63. ") && Catch::Contains("CPU") &&
                                      Catch::Contains("--device cuda:63: "));
}

TEST_CASE("a question that cannot be asked ends with a reason") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8"}, "4,16"));
    gui.until_idle();
    Document& document = *gui.session.documents().front();
    const RunKey failed = document.key_of(0, 1);
    CHECK(gui.engine->obstacle_to_asking(failed).find("failed") != std::string::npos);
    CHECK(!gui.engine->obstacle_to_asking({document.id(), 0, RunId(99)}).empty());
    gui.engine->ask({failed}, question);
    CHECK(document.further_answers().empty());

    testing::SessionWithEngine elsewhere{"another"};  // an instance that does not know where the model is
    Document& opened = elsewhere.session.open(document.path());
    elsewhere.engine->ask({opened.key_of(0, 2)}, question);
    elsewhere.until_idle();
    REQUIRE(opened.further_answers().size() == 1);
    CHECK(opened.further_answers()[0].finished);
    CHECK(opened.further_answers()[0].error.find("load that model first") != std::string::npos);
    CHECK(elsewhere.errors.size() == 1);

    gui.engine->ask({document.key_of(0, 2)}, std::string(3000, '?'));
    gui.until_idle();
    REQUIRE(document.further_answers().size() == 1);
    CHECK(document.further_answers()[0].error.find("context") != std::string::npos);

    // Jobs that are removed from the queue end, too.
    for (int i = 0; i < 3; ++i) gui.engine->ask({document.key_of(0, 2)}, question);
    for (const WaitingJob& job : gui.engine->waiting()) gui.engine->drop(job.number);
    gui.engine->cancel();
    gui.until_idle();
    for (const FurtherAnswer& answer : document.further_answers()) CHECK(answer.finished);
}

namespace {

/// A what-if of the first of snapkv's two runs, which have 16 and 24 entries.
RunKey what_if_of_a_run(testing::SessionWithEngine& gui, LiveWhatIf& what_if, int64_t budget) {
    gui.engine->run(gui.request({"snapkv:window=8"}, "16,24"));
    gui.until_idle();
    gui.session.selection.select_run(gui.session.documents().front()->key_of(0, 1));
    gui.settle(what_if);
    what_if.budget() = budget;
    gui.settle(what_if);
    const RunKey result = what_if.result(gui.session);
    REQUIRE(result.valid());
    return result;
}

}  // namespace

TEST_CASE("a decoded what-if answers like the run with the same settings") {
    testing::SessionWithEngine gui;
    LiveWhatIf what_if;
    const RunKey result = what_if_of_a_run(gui, what_if, 24);
    Document& document = *gui.session.documents().front();
    CHECK(gui.session.attributes(result).output_text.empty());
    gui.engine->decode({result, document.key_of(0, 1)});  // a run of the file cannot be decoded
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    for (int i = 0; i < 1000; ++i) gui.frame();  // the view is hidden for a while and its results are discarded
    gui.settle(what_if);

    namespace schema = trace::schema::run;
    const auto& reader = *document.reader();
    const auto of = [&](int run) { return trace::Place::of_run(0, run); };
    REQUIRE(what_if.result(gui.session) == result);
    CHECK(gui.session.attributes(result).output_text == reader.run(0, 2).output_text);
    CHECK(gui.session.look(result).label.find("what-if") != std::string::npos);
    CHECK(reader.read<int32_t>(of(gui.session.at(result).run), schema::output_ids) ==
          reader.read<int32_t>(of(2), schema::output_ids));
    CHECK(reader.read<float>(of(gui.session.at(result).run), schema::step_kl) ==
          reader.read<float>(of(2), schema::step_kl));
    CHECK(gui.session.at(result).kept()->indices == reader.kept(0, 2)->indices);
    CHECK(gui.engine->has_cache(result));

    document.give_label(0, document.id_of(0, 2), "another run");
    CHECK(gui.engine->has_cache(result));

    what_if.budget() = 20;
    gui.settle(what_if);
    CHECK(gui.session.attributes(what_if.result(gui.session)).output_text.empty());
    CHECK(!gui.engine->has_cache(what_if.result(gui.session)));
}

TEST_CASE("a what-if keeps its answer if a run is renamed or the file is reloaded during decoding") {
    testing::SessionWithEngine gui;
    LiveWhatIf what_if;
    const RunKey result = what_if_of_a_run(gui, what_if, 20);
    Document& document = *gui.session.documents().front();
    gui.engine->decode({result});
    SECTION("renamed") { document.give_label(0, document.id_of(0, 2), "mine"); }
    SECTION("reloaded") { gui.session.open(document.path()); }
    gui.until_idle();
    CHECK(gui.errors.empty());
    CHECK(!gui.session.attributes(result).output_text.empty());
    CHECK(gui.engine->has_cache(result));
}

}  // namespace kvscope::gui

#endif
