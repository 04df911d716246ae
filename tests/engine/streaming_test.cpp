#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "tests/engine/experiment_on_disk.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
namespace fs = std::filesystem;

TEST_CASE("results are reported as soon as they are known: prompt, kept entries, each token, run") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto ids = some_ids(model, 100);
    const std::vector<engine::RunPlan> plans{plan("full", "100%"), plan("snapkv", "20"), plan("snapkv:window=8", "20"),
                                             plan("h2o", "30")};
    for (const bool isolated : {false, true}) {
        Session session(folder, isolated ? "i.h5" : "s.h5", model, {prompt_of_ids(ids, 90)}, plans,
                        options_of(6, true, isolated));
        std::vector<std::string> events;
        std::map<int, trace::RunRecord> kept, finished;
        std::map<int, std::vector<int32_t>> tokens;
        auto& experiment = session.experiment;
        experiment.on_prompt = [&](int prompt, const trace::PromptRecord& record) {
            CHECK(prompt == 0);
            CHECK(record.window_attention.size() ==
                  static_cast<size_t>(90 * model.transformer().shape().n_layers * model.transformer().shape().n_heads));
            CHECK(record.last_logits.size() == static_cast<size_t>(model.transformer().config().vocab_size));
            events.emplace_back("prompt");
        };
        experiment.on_kept = [&](int, int run, const trace::RunRecord& record) {
            CHECK(record.output_ids.empty());
            kept[run] = record;
            if (!isolated) events.emplace_back("kept");
        };
        experiment.on_token = [&](int run, int32_t id) {
            tokens[run].push_back(id);
            if (!isolated && events.back() != "token") events.emplace_back("token");
        };
        experiment.on_run = [&](int, int run, const trace::RunRecord& record) { finished[run] = record; };
        experiment.run(session.prompts);
        CAPTURE(isolated);
        if (isolated)
            CHECK(events == std::vector<std::string>{"prompt"});
        else
            CHECK(events == std::vector<std::string>{"prompt", "kept", "kept", "kept", "token"});
        CHECK(finished.size() == plans.size());
        CHECK(finished[1].status == "failed");
        for (const int run : {0, 2, 3}) {
            CHECK(kept[run].kept_indices == finished[run].kept_indices);
            CHECK(kept[run].attention_kept == finished[run].attention_kept);
            CHECK(kept[run].cache_bytes == finished[run].cache_bytes);
            CHECK(tokens[run] == finished[run].output_ids);
            CHECK(kept[run].requested_budget == plans[static_cast<size_t>(run)].budget.text());
        }
        CHECK(!kept.contains(1));
    }
}

TEST_CASE("a run that ends early is compared and written while others still decode", "[default_model]") {
    const auto& model = default_model_f32();
    const TemporaryFolder folder;
    const auto prompt =
        prompt_of_ids(golden("engine/prompt_ids.json")["prompts"]["short"]["ids"].get<std::vector<int32_t>>());
    const auto plans =
        engine::with_full_run_first({plan("snapkv", "64"), plan("streaming-llm", "16"), plan("random", "32")});
    Session session(folder, "t.h5", model, {prompt}, plans, options_of(48));
    std::map<int, size_t> ends;  // number of tokens of all runs when a run ended
    std::map<int, size_t> lengths;
    size_t n_tokens = 0;
    session.experiment.on_token = [&](int, int32_t) { ++n_tokens; };
    session.experiment.on_run = [&](int, int run, const trace::RunRecord& record) {
        CHECK(record.step_kl.size() > 1);
        CHECK(fs::exists(folder.path() / "t.h5.part" / ("run-0-" + std::to_string(run) + ".h5")));
        ends[run] = n_tokens;
        lengths[run] = record.output_ids.size();
    };
    session.experiment.run(session.prompts);
    REQUIRE(ends.size() == plans.size());
    const auto longest = std::max_element(lengths.begin(), lengths.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    REQUIRE(lengths[0] < longest->second);
    CHECK(ends[0] < ends[longest->first]);
    CHECK(ends[longest->first] == n_tokens);
}

TEST_CASE("generation can continue after the end of the text", "[default_model]") {
    const auto& model = default_model_f32();
    const TemporaryFolder folder;
    const auto prompt =
        prompt_of_ids(golden("engine/prompt_ids.json")["prompts"]["short"]["ids"].get<std::vector<int32_t>>());
    auto options = options_of(24);
    const auto ends = run_experiment(folder, "ends.h5", model, {prompt}, {plan("snapkv", "64")}, options);
    options.ignore_eos = true;
    const auto goes_on = run_experiment(folder, "on.h5", model, {prompt}, {plan("snapkv", "64")}, options);
    const auto short_answer = ends.run_record(0, 0);
    const auto long_answer = goes_on.run_record(0, 0);
    REQUIRE(short_answer.output_ids.size() < 24);
    REQUIRE(long_answer.output_ids.size() == 24);
    CHECK(std::equal(short_answer.output_ids.begin(), short_answer.output_ids.end(), long_answer.output_ids.begin()));
    CHECK(goes_on.run_record(0, 1).output_ids.size() == 24);
    CHECK(goes_on.run_record(0, 1).step_kl.size() == 24);
    // The end-of-text token is not part of the text.
    CHECK(long_answer.output_text.starts_with(short_answer.output_text));
    CHECK(long_answer.output_text.find("<|im_end|>") == std::string::npos);
    // Its trace has another recipe.
    const auto plans = engine::with_full_run_first({plan("snapkv", "64")});
    const std::vector<engine::Prompt> prompts{prompt};
    CHECK(engine::recipe_json(model, prompts, plans, options) !=
          engine::recipe_json(model, prompts, plans, options_of(24)));
}
