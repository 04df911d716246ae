// How a prompt's text becomes token ids, and where its question begins.
#include "engine/prefill/prompt.h"

#include <array>
#include <catch2/catch.hpp>

#include "engine/common/engine_error.h"
#include "tests/engine/ask_one_run.h"
#include "tests/engine/context_with_questions.h"
#include "tests/engine/experiment_on_disk.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using Catch::Matchers::Contains;

namespace {

const std::string code = "The code is 58-21-94.";
const std::string asked = "What is the code?";

engine::Prompt prepared(const std::string& given, const std::string& question, engine::PromptOptions options = {}) {
    options.n_new = 1;
    return engine::tokenize_prompt(default_model_f32(), given, question, options);
}

std::string spelt(const engine::Prompt& prompt, size_t begin, size_t end) {
    std::string text;
    for (size_t i = begin; i < end; ++i) text += default_model_f32().tokenizer().piece(prompt.ids[i]);
    return text;
}

}  // namespace

TEST_CASE("a question changes no token: context and question are tokenized as one text", "[default_model]") {
    const auto& tokenizer = default_model_f32().tokenizer();
    for (const bool templated : {true, false}) {
        for (const std::string& context_text : {code, context, code + "\n\n", code + "  "}) {
            for (const std::string& question : {asked, "\n" + asked, std::string(" (why?)"), std::string("94?")}) {
                CAPTURE(templated, context_text, question);
                const auto aware = prepared(context_text, question, {.use_template = templated});
                const auto blind = prepared(context_text, question, {.use_template = templated, .query_aware = false});
                const auto as_one = prepared(context_text + "\n\n" + question, "", {.use_template = templated});
                CHECK(aware.ids == as_one.ids);
                CHECK(aware.ids == tokenizer.encode(aware.text, !templated, true));
                CHECK(blind.ids == aware.ids);
                CHECK(blind.n_context == aware.n_context);
                CHECK(blind.n_visible() == blind.n_context);
                const auto n = static_cast<size_t>(aware.n_context);
                CHECK(spelt(aware, 0, n) + spelt(aware, n, aware.ids.size()) == aware.text);
                // The separator belongs to the context; only a token with a character of the question belongs to the
                // question.
                const size_t begin = aware.text.rfind(question);
                CHECK(spelt(aware, 0, n).size() <= begin);
                CHECK(spelt(aware, 0, n + 1).size() > begin);
            }
        }
    }
    const auto prompt = prepared(code, asked, {.use_template = false});
    const auto n = static_cast<size_t>(prompt.n_context);
    CHECK(std::vector(prompt.ids.begin() + static_cast<int64_t>(n) - 2, prompt.ids.begin() + static_cast<int64_t>(n)) ==
          std::vector<int32_t>{198, 198});  // not 1116, the token for "\n\n" at the end of a text
    CHECK(default_model_f32().tokenizer().piece(prompt.ids[n]) == "What");
}

TEST_CASE("questions whose contexts have different tokens have separate prefills", "[default_model]") {
    const TemporaryFolder folder;
    std::vector<engine::Prompt> prompts;
    for (const std::string& question : {asked, std::string("Which code?"), "\n" + asked})
        prompts.push_back(prepared(code, question, {.use_template = false, .query_aware = false}));
    REQUIRE(prompts[0].n_context == prompts[1].n_context);
    REQUIRE(!std::equal(prompts[0].ids.begin(), prompts[0].ids.begin() + prompts[0].n_context, prompts[2].ids.begin()));
    Session session(folder, "t.h5", default_model_f32(), prompts, {plan("full", "100%"), plan("h2o", "6")},
                    options_of(2, true));
    session.experiment.run(session.prompts);
    session.writer.finish();
    const trace::Reader reader(folder.path() / "t.h5");
    REQUIRE(reader.n_prompts() == 3);
    CHECK(reader.prompt(1).context_of == 0);
    CHECK(!reader.prompt(2).context_of);
    CHECK(reader.run(2, 1).status == "complete");
    for (int i = 0; i < 3; ++i) CHECK(reader.token_ids(i) == prompts[static_cast<size_t>(i)].ids);
}

TEST_CASE("a question that shares a token with the context is read separately, with a remark", "[default_model]") {
    const TemporaryFolder folder;
    const auto& model = default_model_f32();
    const auto prompt = prepared(code, asked, {.use_template = false, .query_aware = false});
    auto options = options_of(2, false);
    options.keep_caches = true;
    Session session(folder, "t.h5", model, {prompt}, {plan("full", "100%")}, options);
    session.experiment.run(session.prompts);
    const auto caches = session.experiment.take_caches();
    engine::SilentProgress progress;
    const auto reply_to = [&](const std::string& question) {
        return ask_one_run(*caches.at(0), model, question, {.n_new = 2, .sampling = {}, .ignore_eos = false}, progress);
    };
    const auto second = reply_to("Which code?");
    CHECK(second.remark.empty());
    CHECK(second.read == "Which code?");
    const std::string joins = "\n" + asked;
    const auto apart = reply_to(joins);
    CHECK_THAT(apart.remark, Contains("The question was tokenized separately from the context"));
    CHECK(apart.read == joins);
    CHECK(apart.read_ids == model.tokenizer().encode(joins, false, true));
}

TEST_CASE("control tokens of a text without template are parsed unless --no-special is set", "[default_model]") {
    const auto& model = default_model_f32();
    const std::string text = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    const auto count = [&](const engine::Prompt& prompt, const char* name) {
        return std::count(prompt.ids.begin(), prompt.ids.end(), *model.tokenizer().id_of(name));
    };
    const auto bare = prepared(text, "", {.use_template = false});
    CHECK(bare.parses_special);
    CHECK(count(bare, "<|im_start|>") == 2);
    CHECK(count(bare, "<|im_end|>") == 1);
    const auto letters = prepared(text, "", {.use_template = false, .parse_special = false});
    CHECK(!letters.parses_special);
    CHECK(count(letters, "<|im_start|>") == 0);
    const auto in_template = prepared(text, "", {.parse_special = false});
    CHECK(in_template.parses_special);
    CHECK(count(in_template, "<|im_start|>") == 2 + count(prepared("Hello", ""), "<|im_start|>"));

    const auto said = [&](const engine::Prompt& prompt, bool parse) {
        const auto remarks = engine::remarks_on_tokens(model, {&prompt, 1}, parse);
        std::string all;
        for (const auto& remark : remarks) all += remark + "\n";
        return all;
    };
    CHECK_THAT(said(bare, true), Contains("<|im_end|> (1)") && Contains("<|im_start|> (2)") &&
                                     Contains("read as control tokens; with --no-special they are read as plain text"));
    CHECK_THAT(said(letters, false), Contains("<|im_start|> (2)") && Contains("read as plain text (--no-special)"));
    CHECK_THAT(said(in_template, false),
               Contains("--no-special has no effect") && Contains("as transformers and llama.cpp read them"));
    CHECK(said(prepared("Hello", asked), true).empty());
}

TEST_CASE("a byte without a token changes neither the question's beginning nor the remaining text", "[default_model]") {
    const auto& model = default_model_f32();
    const std::string left_out = "The\x04 code\x04 is 58-21-94.";
    for (const bool templated : {true, false}) {
        CAPTURE(templated);
        const engine::PromptOptions options{.use_template = templated, .query_aware = false};
        const auto without = prepared(code, asked, options), with = prepared(left_out, asked, options);
        CHECK(with.ids == without.ids);
        CHECK(with.n_context == without.n_context);
        const auto remarks = engine::remarks_on_tokens(model, std::array{without, with, with}, true);
        REQUIRE(remarks.size() == 1);
        CHECK_THAT(remarks[0], Contains("prompt and 1 more: ") && Contains("which are omitted: 4"));
    }

    const TemporaryFolder folder;
    auto options = options_of(2, false);
    options.keep_caches = true;
    const auto prompt = prepared(left_out, asked, {.use_template = false, .query_aware = false});
    Session session(folder, "t.h5", model, {prompt}, {plan("full", "100%")}, options);
    session.experiment.run(session.prompts);
    const auto caches = session.experiment.take_caches();
    engine::SilentProgress progress;
    const std::string joins = "\n" + asked;
    const auto reply =
        ask_one_run(*caches.at(0), model, joins, {.n_new = 2, .sampling = {}, .ignore_eos = false}, progress);
    CHECK_THAT(reply.remark, Contains("The question was tokenized separately from the context"));
    CHECK(reply.read == joins);
}

TEST_CASE("a template writes the given time", "[default_model]") {
    const auto at = [](std::time_t now) { return prepared("Hello", asked, {.now = now}).rendered_at; };
    CHECK(at(86400) == 86400);
}
