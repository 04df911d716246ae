#include <catch2/catch.hpp>
#include <map>

#include "engine/decode/decode_answers.h"
#include "engine/prefill/prefill.h"
#include "tests/engine/ask_one_run.h"
#include "tests/engine/context_with_questions.h"
#include "tests/engine/experiment_on_disk.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

std::vector<engine::RunPlan> plans() {
    return {plan("full", "100%"),
            plan("snapkv:window=8", "40"),
            plan("aperturekv", "40"),
            plan("snapkv:positions=cache", "40"),
            plan("h2o:rolling=on", "40"),
            plan("streaming-llm:rolling=on,positions=cache", "40"),
            plan("snapkv:window=20", "15"),  // fails, because the window exceeds the budget
            plan("ada-snapkv:granularity=query_head,window=8", "40"),
            plan("think:recent=5", "0.8"),
            plan("palu", "0.6"),
            plan("minicache", "0.8"),
            plan("commonkv:layer_step=2,recent=5", "0.7"),
            plan("kvslimmer:sinks=2", "40"),
            plan("kvslimmer:sinks=2,chunk=3,decode_merge=on", "40"),
            plan("asymkv:sinks=2", "40"),
            plan("cam", "40")};
}

struct Finished {
    std::vector<std::unique_ptr<engine::Conversation>> caches;
    std::map<int, trace::RunRecord> records;  ///< of the last prompt
};

Finished run(const TemporaryFolder& folder, const std::string& name, std::vector<engine::Prompt> prompts) {
    auto options = options_of(n_new, false);
    options.keep_caches = true;
    Session session(folder, name, tiny_model(), std::move(prompts), plans(), options);
    Finished finished;
    session.experiment.on_run = [&](int, int index, const trace::RunRecord& record) {
        finished.records[index] = record;
    };
    session.experiment.run(session.prompts);
    finished.caches = session.experiment.take_caches();
    CHECK(session.experiment.take_caches().empty());
    REQUIRE(finished.caches.size() == plans().size());
    return finished;
}

engine::Reply ask(engine::Conversation& conversation, const std::string& question) {
    engine::SilentProgress progress;
    std::vector<int32_t> streamed;
    auto reply =
        ask_one_run(conversation, tiny_model(), question, {.n_new = n_new, .sampling = {}, .ignore_eos = false},
                    progress, [&](int32_t id) { streamed.push_back(id); });
    CHECK(streamed == reply.ids);
    return reply;
}

/// Computes the answer from a prefill reduced to the recorded entries, reading and decoding token by token.
std::vector<int32_t> by_brute_force(const engine::Prompt& prompt, const trace::RunRecord& record,
                                    std::span<const int32_t> read) {
    const auto& model = tiny_model().transformer();
    engine::SilentProgress progress;
    engine::PrefillRequest request;
    request.ids = prompt.ids;
    const auto result = engine::prefill(model, request, nullptr, progress);
    engine::RunCache cache(model, policies::Granularity::kv_head, policies::Positions::prompt, false);
    const int rows = cache.n_rows();
    for (int layer = 0; layer < model.shape().n_layers; ++layer) {
        policies::Selection selection;
        for (int row = 0; row < rows; ++row) {
            const auto i = static_cast<size_t>(layer * rows + row);
            selection.rows.emplace_back(record.kept_indices.begin() + static_cast<int64_t>(record.kept_offsets[i]),
                                        record.kept_indices.begin() + static_cast<int64_t>(record.kept_offsets[i + 1]));
        }
        cache.compress(layer, selection, result.cache[static_cast<size_t>(layer)]);
    }
    cache.reserve(static_cast<int64_t>(read.size()) + n_new);
    engine::Sequence sequence{&cache, static_cast<int64_t>(prompt.ids.size())};
    std::vector<float> logits;
    for (size_t t = 0; t < read.size(); ++t) {
        const auto token = read.subspan(t, 1);
        const at::Tensor row = model.logits(engine::feed_tokens(model, {&sequence, 1}, {&token, 1}));
        logits.assign(row.const_data_ptr<float>(), row.const_data_ptr<float>() + row.numel());
    }
    return engine::decode_answers(model, {&sequence, 1}, {&logits, 1}, n_new, {}, tiny_model().end_ids(), progress)[0]
        .ids;
}

}  // namespace

TEST_CASE("a further question about a compressed context is answered like a run's second question") {
    const TemporaryFolder folder;
    for (const bool templated : {true, false}) {
        const engine::PromptOptions options{"p", templated, false, n_new};
        const auto first = engine::tokenize_prompt(tiny_model(), context, first_question, options);
        const auto second = engine::tokenize_prompt(tiny_model(), context, second_question, options);
        const std::string name = templated ? "t" : "n";
        const auto expected = run(folder, name + "2.h5", {first, second});
        auto one = run(folder, name + "1.h5", {first});
        for (size_t i = 0; i < one.caches.size(); ++i) {
            const auto index = static_cast<int>(i);
            CAPTURE(templated, one.records[index].label, one.records[index].message);
            REQUIRE((one.caches[i] == nullptr) == (one.records[index].status == "failed"));
            if (!one.caches[i]) continue;
            CHECK(ask(*one.caches[i], second_question).ids == expected.records.at(index).output_ids);
            // Questions leave no trace in the cache: both answers come out again.
            const auto again = ask(*one.caches[i], first_question);
            CHECK(again.ids == one.records[index].output_ids);
            CHECK(again.text == one.records[index].output_text);
            CHECK(ask(*one.caches[i], second_question).ids == expected.records.at(index).output_ids);
        }
        CHECK(one.caches[6] == nullptr);
    }
}

TEST_CASE("a question after the prompt's own is read as a further turn") {
    const TemporaryFolder folder;
    for (const bool templated : {true, false}) {
        const engine::PromptOptions options{"p", templated, true, n_new};
        const auto prompt = engine::tokenize_prompt(tiny_model(), context, first_question, options);
        auto finished = run(folder, templated ? "t.h5" : "n.h5", {prompt});
        for (const int index : {0, 1, 2}) {
            const auto& record = finished.records[index];
            CAPTURE(templated, record.label);
            auto& conversation = *finished.caches[static_cast<size_t>(index)];
            CHECK(conversation.label() == record.label);
            const auto reply = ask(conversation, second_question);
            const std::string turn = record.output_text + "<|im_end|>\n<|im_start|>user\n" + second_question +
                                     "<|im_end|>\n<|im_start|>assistant\n";
            CHECK(reply.read == (templated ? turn : "\n\n" + second_question));
            CHECK(reply.remark.empty());
            auto whole = prompt.ids;
            whole.insert(whole.end(), reply.read_ids.begin(), reply.read_ids.end());
            CHECK(whole == tiny_model().tokenizer().encode(prompt.text + reply.read, !templated, true));
            CHECK(reply.ids == by_brute_force(prompt, record, reply.read_ids));
        }
    }
}

TEST_CASE("a cache of an earlier version with separate tokenization answers further questions") {
    const TemporaryFolder folder;
    auto prompt = engine::tokenize_prompt(tiny_model(), context, first_question, {"p", false, false, n_new});
    const auto& tokenizer = tiny_model().tokenizer();
    prompt.ids = tokenizer.encode(context + " and\n\n", true, false);
    prompt.n_context = static_cast<int64_t>(prompt.ids.size());
    const auto rest = tokenizer.encode(first_question, false, false);
    prompt.ids.insert(prompt.ids.end(), rest.begin(), rest.end());
    prompt.token_text.resize(prompt.ids.size());
    prompt.parses_special = false;
    auto finished = run(folder, "t.h5", {prompt});
    const auto reply = ask(*finished.caches[1], second_question);
    CHECK_THAT(reply.remark, Catch::Contains("The question was tokenized separately from the context"));
    CHECK(reply.read == second_question);
    CHECK(reply.read_ids == tokenizer.encode(second_question, false, false));
}

TEST_CASE("a question that cannot be asked is refused") {
    const TemporaryFolder folder;
    const auto prompt = engine::tokenize_prompt(tiny_model(), context, "", {"p", true, true, n_new});
    auto finished = run(folder, "t.h5", {prompt});
    auto& conversation = *finished.caches[1];
    CHECK_THROWS_AS(ask(conversation, " \n"), std::invalid_argument);
    CHECK_THROWS_AS(ask(conversation, std::string(600, 'x') + context), std::invalid_argument);
    CHECK_FALSE(ask(conversation, first_question).ids.empty());
}
