#include <catch2/catch.hpp>
#include <map>

#include "engine/common/engine_error.h"
#include "engine/rerun_recorded_runs.h"
#include "tests/engine/ask_one_run.h"
#include "tests/engine/context_with_questions.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/policies/echo_maps_file.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

std::vector<engine::RunPlan> plans_to_repeat() {
    return {plan("full", "100%"),
            plan("snapkv:window=8", "40"),
            plan("aperturekv", "25%"),
            plan("snapkv:positions=cache", "40"),
            plan("h2o:rolling=on", "40"),
            plan("random", "40"),
            plan("oracle", "40"),
            plan("snapkv:window=20", "15"),  // fails, because the window exceeds the budget
            plan("ada-snapkv:granularity=query_head,window=8", "40"),
            plan("think:recent=5", "0.8"),
            plan("palu", "0.6"),
            plan("minicache", "0.8"),
            plan("commonkv:layer_step=2,recent=5", "0.7"),
            plan("kvslimmer:sinks=2", "40"),
            plan("kvslimmer:sinks=2,chunk=3,decode_merge=on", "30%"),
            plan("asymkv:sinks=2", "40"),
            plan("cam", "40")};
}

/// Writes maps for the tiny model, whose two layers form a group; the second stores its first `local` numbers.
std::string tiny_maps(int local) {
    const auto shape = tiny_model().transformer().shape();
    return policies::to_safetensors(policies::test::formula_maps(
        {shape.n_layers, shape.n_kv_heads, shape.head_dim, 2, local}, tiny_model().fingerprint()));
}

std::vector<engine::Prompt> prompts_of(bool templated, bool query_aware) {
    std::vector<engine::Prompt> prompts;
    for (const auto& asked : {first_question, std::string("What do the foxes find?")})
        prompts.push_back(engine::tokenize_prompt(tiny_model(), context, asked, {"p", templated, query_aware, n_new}));
    return prompts;
}

}  // namespace

TEST_CASE("a trace's prompt has the context that its text was made from") {
    const TemporaryFolder folder;
    for (const bool templated : {true, false}) {
        for (const std::string& asked : {std::string(), first_question}) {
            for (const std::string& given : {context, "  " + context + "\n"}) {
                const auto prompt = engine::tokenize_prompt(tiny_model(), given, asked, {"p", templated, true, 1});
                Session session(folder, "p.h5", tiny_model(), {prompt}, {plan("full", "100%")}, options_of(1, false));
                session.experiment.run(session.prompts);
                session.writer.finish();
                const trace::Reader reader(folder.path() / "p.h5");
                const auto stored = engine::read_prompt_from_trace(tiny_model(), reader, 0, 1);
                CAPTURE(templated, asked, given);
                CHECK(!stored.context.empty());
                CHECK(prompt.text.find(stored.context) != std::string::npos);
                CHECK(engine::tokenize_prompt(tiny_model(), stored.context, asked, {"p", templated, true, 1}).ids ==
                      prompt.ids);
                std::filesystem::remove(folder.path() / "p.h5");
            }
        }
    }
}

TEST_CASE("runs of a trace are repeated from its tokens, and their caches answer like the original ones",
          "[default_model]") {
    const TemporaryFolder folder;
    const bool templated = GENERATE(true, false);
    const bool query_aware = GENERATE(true, false);
    auto options = options_of(n_new);
    options.keep_caches = true;
    options.seed = 7;
    Session session(folder, "t.h5", tiny_model(), prompts_of(templated, query_aware), plans_to_repeat(), options);
    std::map<std::pair<int, int>, trace::RunRecord> records;
    session.experiment.on_run = [&](int prompt, int run, const trace::RunRecord& record) {
        records[{prompt, run}] = record;
    };
    session.experiment.run(session.prompts);
    session.writer.finish();
    const auto originals = session.experiment.take_caches();
    const trace::Reader reader(folder.path() / "t.h5");

    const int prompt = 1;  // the last prompt, to which the original caches belong
    std::vector<int> runs;
    for (int run = static_cast<int>(plans_to_repeat().size()); run-- > 0;) runs.push_back(run);
    engine::SilentProgress progress;
    const bool answers = GENERATE(true, false);
    CAPTURE(templated, query_aware, answers);
    std::map<size_t, std::vector<int32_t>> streamed;
    const auto repeated = engine::rerun_recorded_runs(tiny_model(), reader, prompt, runs, answers, progress,
                                                      [&](size_t i, int32_t id) { streamed[i].push_back(id); });
    REQUIRE(repeated.size() == runs.size());
    std::vector<engine::Conversation*> caches;
    std::vector<engine::Reply> expected;
    for (size_t i = 0; i < runs.size(); ++i) {
        const auto& recorded = records.at({prompt, runs[i]});
        CAPTURE(recorded.label, recorded.message);
        const auto& again = repeated[i];
        REQUIRE((again.cache == nullptr) == (recorded.status == "failed"));
        CHECK(again.record.status == recorded.status);
        if (!again.cache) continue;
        CHECK(again.n_other == 0);
        CHECK(again.record.kept_indices == recorded.kept_indices);
        if (answers) {
            CHECK(again.record.output_ids == recorded.output_ids);
            CHECK(again.record.step_kl == recorded.step_kl);
            CHECK(streamed[i] == recorded.output_ids);
        }
        caches.push_back(again.cache.get());
        const engine::QuestionOptions asking{n_new, {}, false};
        expected.push_back(
            ask_one_run(*originals[static_cast<size_t>(runs[i])], tiny_model(), second_question, asking, progress));
    }
    const auto replies = engine::ask_all_runs(tiny_model(), caches, second_question, {n_new, {}, false}, progress);
    REQUIRE(replies.size() == expected.size());
    for (size_t i = 0; i < replies.size(); ++i) {
        CHECK(replies[i].error.empty());
        CHECK(replies[i].read == expected[i].read);
        CHECK(replies[i].ids == expected[i].ids);
    }
}

TEST_CASE("a what-if with a recorded run's settings gives the same answer with that run and alone") {
    const TemporaryFolder folder;
    const auto maps = folder.path() / "maps.safetensors";
    std::ofstream(maps, std::ios::binary) << tiny_maps(8);
    const auto [given, budget] = GENERATE(table<std::string, std::string>({{"h2o:rolling=on,recent=1", "8"},
                                                                           {"h2o:rolling=on,recent=2", "20"},
                                                                           {"echokv:recent=4,sinks=2", "100%"},
                                                                           {"echokv-hybrid:recent=4,sinks=2", "100%"},
                                                                           {"snapkv:window=8", "20"}}));
    const std::string policy = given.starts_with("echokv") ? given + ",maps=" + maps.string() : given;
    CAPTURE(policy, budget);
    const auto prompt = engine::tokenize_prompt(tiny_model(), context, first_question, {"p", false, false, n_new});
    Session session(folder, "t.h5", tiny_model(), {prompt}, {plan("full", "100%"), plan(policy, budget)},
                    options_of(n_new, false));
    trace::RunRecord recorded;
    session.experiment.on_run = [&](int, int run, const trace::RunRecord& record) {
        if (run == 1) recorded = record;
    };
    session.experiment.run(session.prompts);
    session.writer.finish();
    const trace::Reader reader = trace::Reader(folder.path() / "t.h5").with_run(0, recorded);
    const int runs[] = {0, 1, 2, 0};
    engine::SilentProgress progress;
    std::map<size_t, std::vector<int32_t>> streamed;
    const auto again = engine::rerun_recorded_runs(tiny_model(), reader, 0, runs, true, progress,
                                                   [&](size_t i, int32_t id) { streamed[i].push_back(id); });
    CHECK(streamed[1] == recorded.output_ids);
    CHECK(streamed[2] == recorded.output_ids);
    CHECK(streamed[3] == streamed[0]);
    REQUIRE(again[1].cache);
    REQUIRE(again[2].cache);
    CHECK(again[1].cache != again[2].cache);
    const engine::QuestionOptions asking{80, {}, true};
    std::vector<engine::Conversation*> all;
    std::vector<std::vector<int32_t>> alone;
    for (const auto& one : again) {
        all.push_back(one.cache.get());
        alone.push_back(ask_one_run(*one.cache, tiny_model(), second_question, asking, progress).ids);
    }
    CHECK(alone[1] == alone[2]);
    const auto replies = engine::ask_all_runs(tiny_model(), all, second_question, asking, progress);
    for (size_t i = 0; i < replies.size(); ++i) {
        CAPTURE(i);
        CHECK(replies[i].error.empty());
        CHECK(replies[i].ids == alone[i]);
    }
}

TEST_CASE("a question that is too long for one run is answered by the other runs") {
    const TemporaryFolder folder;
    auto options = options_of(n_new, false);
    options.keep_caches = true;
    const auto prompt = engine::tokenize_prompt(tiny_model(), context, first_question, {"p", true, false, n_new});
    const auto shorter = engine::tokenize_prompt(tiny_model(), "A hen.", first_question, {"p", true, false, n_new});
    Session one(folder, "a.h5", tiny_model(), {prompt}, {plan("full", "100%")}, options);
    Session two(folder, "b.h5", tiny_model(), {shorter}, {plan("full", "100%")}, options);
    one.experiment.run(one.prompts);
    two.experiment.run(two.prompts);
    const auto a = one.experiment.take_caches();
    const auto b = two.experiment.take_caches();
    engine::Conversation* both[] = {a[0].get(), b[0].get()};
    const int64_t limit = tiny_model().transformer().config().context_length;
    const int64_t n_long = limit - prompt.n_context;
    engine::SilentProgress progress;
    const auto replies = engine::ask_all_runs(tiny_model(), both, first_question, {n_long, {}, false}, progress);
    CHECK(replies[0].error.find("context") != std::string::npos);
    CHECK(replies[0].ids.empty());
    CHECK(replies[1].error.empty());
    CHECK(!replies[1].ids.empty());
}

TEST_CASE("runs that cannot be repeated have a reason") {
    const TemporaryFolder folder;
    const auto prompt = engine::tokenize_prompt(tiny_model(), context, first_question, {"p", true, true, n_new});
    Session session(folder, "t.h5", tiny_model(), {prompt}, {plan("full", "100%"), plan("snapkv:window=8", "40")},
                    options_of(n_new, false));
    session.experiment.run(session.prompts);
    session.writer.finish();
    const trace::Reader reader(folder.path() / "t.h5");
    trace::RunAttributes run = reader.run(0, 1);
    CHECK(engine::plan_of_recorded_run(run).label() == "snapkv:window=8 @ 40");
    run.policy = "another";
    CHECK_THROWS_AS(engine::plan_of_recorded_run(run), engine::UsageError);
    run.policy = "snapkv";
    run.parameters_json = R"({"breadth": 8})";
    CHECK_THROWS_AS(engine::plan_of_recorded_run(run), engine::UsageError);
    CHECK(engine::options_of_recorded_answers(reader, 0).n_new == n_new);
}

TEST_CASE("a run is not repeated with different maps") {
    const TemporaryFolder folder;
    const auto path = folder.path() / "maps.safetensors";
    std::ofstream(path, std::ios::binary) << tiny_maps(8);
    const std::string echo = "echokv:recent=9,maps=" + path.string();
    const auto prompt = engine::tokenize_prompt(tiny_model(), context, first_question, {"p", true, false, n_new});
    Session session(folder, "t.h5", tiny_model(), {prompt},
                    {plan("full", "100%"), plan(echo, "0.625"), plan("snapkv:window=8", "40")},
                    options_of(n_new, false));
    session.experiment.run(session.prompts);
    session.writer.finish();
    const trace::Reader reader(folder.path() / "t.h5");
    const int runs[] = {0, 1, 2};
    engine::SilentProgress progress;
    const bool answers = GENERATE(true, false);
    const auto again = engine::rerun_recorded_runs(tiny_model(), reader, 0, runs, answers, progress);
    for (const auto& one : again) CHECK(one.cache != nullptr);
    for (const bool gone : {false, true}) {
        CAPTURE(answers, gone);
        std::filesystem::remove(path);
        if (!gone) std::ofstream(path, std::ios::binary) << tiny_maps(4);
        const auto others = engine::rerun_recorded_runs(tiny_model(), reader, 0, runs, answers, progress);
        CHECK(others[0].cache != nullptr);
        CHECK(others[2].cache != nullptr);
        CHECK(others[1].cache == nullptr);
        CHECK(others[1].record.status == "failed");
        CHECK(others[1].record.label == reader.run(0, 1).label);
        CHECK_THAT(others[1].record.message,
                   Catch::Matchers::Contains(path.string()) &&
                       Catch::Matchers::Contains(gone ? "found none" : "files that have changed"));
    }
}
