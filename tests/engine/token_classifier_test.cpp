// LLMLingua-2's classifiers compared with transformers, and the run with a second implementation
// (scripts/golden/token_classifiers.py).
#include "engine/classifier/token_classifier.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "engine/common/engine_error.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/threads.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

const engine::TokenClassifier& classifier(const std::string& name) {
    static engine::SilentProgress progress;
    static const engine::TokenClassifier bert(test_data("classifiers/bert"), progress);
    static const engine::TokenClassifier xlm(test_data("classifiers/xlm-roberta"), progress);
    return name == "bert" ? bert : xlm;
}

std::string folder_of(const std::string& name) { return test_data("classifiers/" + name).string(); }

/// Counts the classified texts.
class Counting final : public engine::Progress {
 public:
    void begin(std::string_view phase, int64_t, std::string_view) override {
        n_classified += phase == "classify" ? 1 : 0;
    }
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    int n_classified = 0;
};

/// Returns the message of opening a copy of a classifier whose folder was changed.
template <typename Change>
std::string message_after(const std::string& name, Change change) {
    const TemporaryFolder folder;
    for (const auto& entry : fs::directory_iterator(test_data("classifiers/" + name)))
        fs::copy_file(entry.path(), folder.path() / entry.path().filename());
    change(folder.path());
    engine::SilentProgress progress;
    try {
        engine::TokenClassifier(folder.path(), progress);
    } catch (const checkpoint::CheckpointError& error) {
        return error.what();
    }
    return "opened";
}

auto configured(const char* pointer, const nlohmann::json& value) {
    return [=](const fs::path& folder) {
        auto config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
        config[nlohmann::json::json_pointer(pointer)] = value;
        std::ofstream(folder / "config.json") << config;
    };
}

}  // namespace

TEST_CASE("a token classifier's logits equal transformers'", "[classifier]") {
    for (const auto& one : golden("classifiers/logits.json")) {
        const auto ids = one["ids"].get<std::vector<int32_t>>();
        const auto expected = one["logits"].get<std::vector<std::vector<float>>>();
        const at::Tensor logits = classifier(one["classifier"]).encoder().logits(ids);
        REQUIRE(logits.size(0) == static_cast<int64_t>(expected.size()));
        for (size_t i = 0; i < expected.size(); ++i) {
            for (size_t label = 0; label < 2; ++label) {
                CAPTURE(one["classifier"], i, label);
                CHECK(std::abs(logits.const_data_ptr<float>()[2 * i + label] - expected[i][label]) < 1e-4f);
            }
        }
    }
}

TEST_CASE("a token classifier's logits do not depend on the number of threads", "[classifier]") {
    for (const auto& one : golden("classifiers/logits.json")) {
        const auto ids = one["ids"].get<std::vector<int32_t>>();
        const auto with = [&](int n) {
            const Threads threads(n);
            const at::Tensor logits = classifier(one["classifier"]).encoder().logits(ids);
            return std::vector<float>(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
        };
        CHECK(same_bits(with(1), with(2)));
        CHECK(same_bits(with(1), with(3)));
    }
}

TEST_CASE("windows and the probabilities of pieces of a text equal the reference", "[classifier]") {
    const auto cases = golden("classifiers/prompts.json")["cases"];
    size_t most_windows = 0;
    for (const auto& one : cases) {
        const auto& model = classifier(one["classifier"]);
        const auto text = one["text"].get<std::string>();
        const auto& settings = one["settings"];
        CAPTURE(one["classifier"], text, settings.dump());
        const auto tokens = model.tokenizer().encode(text);
        std::vector<std::pair<size_t, size_t>> windows;
        for (const auto& window : model.windows(tokens)) windows.emplace_back(window.begin, window.end);
        CHECK(windows == one["windows"].get<std::vector<std::pair<size_t, size_t>>>());
        most_windows = std::max(most_windows, windows.size());
        engine::SilentProgress progress;
        const auto of_bytes =
            model.byte_probabilities(text,
                                     {.model = "",
                                      .first_token = settings.value("token_to_word", "mean") == "first",
                                      .keep_digits = settings.value("force_digits", false),
                                      .force_tokens = settings.value("force_tokens", std::vector<std::string>())},
                                     progress);
        size_t begin = 0, i = 0;
        for (const size_t end : one["ends"].get<std::vector<size_t>>()) {
            CAPTURE(begin, end);
            const float found = engine::mean_byte_probability(of_bytes, begin, end);
            CHECK(std::abs(found - one["probabilities"][i++].get<float>()) < 1e-5f);
            begin = end;
        }
    }
    CHECK(cases.size() == 24);
    CHECK(most_windows > 2);
}

TEST_CASE("llmlingua-2 keeps the reference's tokens, and the model reads them again", "[classifier]") {
    const auto& model = tiny_model();
    const auto prompts = golden("classifiers/prompts.json");
    for (const auto& one : prompts["runs"]) {
        const std::string name = one["classifier"];
        const auto prompt = engine::tokenize_prompt(model, one["context"].get<std::string>(),
                                                    one["question"].get<std::string>(), {.n_new = 8});
        REQUIRE(prompt.ids == one["ids"].get<std::vector<int32_t>>());
        std::vector<engine::RunPlan> plans;
        for (const auto& [budget, kept] : one["kept"].items())
            plans.push_back(plan("llmlingua-2:model=" + folder_of(name), budget));
        plans.push_back(plan("snapkv:window=8", "120"));
        plans.push_back(plan("llmlingua-2:model=" + folder_of(name), "100%"));
        plans = engine::with_full_run_first(plans);
        for (const bool isolated : {false, true}) {
            const TemporaryFolder folder;
            Counting progress;
            const std::vector<engine::Prompt> prompts{prompt};
            const auto options = options_of(8, true, isolated);
            const auto path = folder.path() / "t.h5";
            trace::Writer writer(path, engine::recipe_json(model, prompts, plans, options));
            engine::Experiment experiment(model, plans, options, writer, progress);
            experiment.run(prompts);
            writer.finish();
            const trace::Reader reader(path);
            CHECK(progress.n_classified == (isolated ? 4 : 1));  // equal requests share one classification
            int run = 1;
            for (const auto& [budget, kept] : one["kept"].items()) {
                const auto record = reader.run_record(0, run++);
                CAPTURE(name, isolated, record.label, record.message);
                REQUIRE(record.status == "complete");
                const auto expected = kept.get<std::vector<uint32_t>>();
                const auto shape = model.transformer().shape();
                for (size_t row = 0; row < static_cast<size_t>(shape.n_layers * shape.n_kv_heads); ++row) {
                    const auto begin =
                        record.kept_indices.begin() + static_cast<std::ptrdiff_t>(record.kept_offsets[row]);
                    CHECK(std::vector<uint32_t>(begin, begin + static_cast<std::ptrdiff_t>(expected.size())) ==
                          expected);
                }
                // The trace holds each token's probability, or NaN if it had none.
                REQUIRE(record.scores.size() ==
                        prompt.ids.size() * static_cast<size_t>(shape.n_layers * shape.n_kv_heads));
                for (size_t i = 0; i < prompt.ids.size(); ++i) {
                    const auto& p = one["probabilities"][i];
                    CHECK(std::isnan(record.scores[i]) == p.is_null());
                    if (!p.is_null()) CHECK(std::abs(record.scores[i] - p.get<float>()) < 1e-5f);
                }
                CHECK(record.prefill_s > 0);
                CHECK(record.step_kl.size() == reader.run_record(0, 0).output_ids.size());
            }
            CHECK(reader.run_record(0, run).status == "complete");
            const auto everything = reader.run_record(0, run + 1);
            CHECK(everything.output_ids == reader.run_record(0, 0).output_ids);
            // The model reads the kept tokens as a separate prompt.
            const auto kept = one["kept"]["160"].get<std::vector<uint32_t>>();
            std::vector<int32_t> ids;
            for (const uint32_t i : kept) ids.push_back(prompt.ids[i]);
            const auto alone = run_experiment(folder, "alone.h5", model, {prompt_of_ids(ids)}, {}, options_of(8));
            CHECK(alone.run_record(0, 0).output_ids == reader.run_record(0, 2).output_ids);
        }
    }
}

TEST_CASE("a trace of one classifier is not resumed with another in the same folder", "[classifier]") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    for (const auto& entry : fs::directory_iterator(test_data("classifiers/bert")))
        fs::copy_file(entry.path(), folder.path() / entry.path().filename());
    const auto plans = engine::with_full_run_first({plan("llmlingua-2:model=" + folder.path().string(), "64")});
    const auto recipe = [&] { return engine::recipe_json(model, {}, plans, options_of(8)); };
    const std::string before = recipe();
    CHECK(recipe() == before);
    std::ofstream(folder.path() / "config.json", std::ios::app) << ' ';
    CHECK(recipe() != before);
}

TEST_CASE("llmlingua-2 compresses only the context, whatever text surrounds it", "[classifier]") {
    const auto& model = tiny_model();
    const std::string policy = "llmlingua-2:model=" + folder_of("bert");
    const auto free_tokens = [&](const engine::Prompt& prompt, int64_t budget) {
        const TemporaryFolder folder;
        const auto reader =
            run_experiment(folder, "t.h5", model, {prompt}, {plan(policy, std::to_string(budget))}, options_of(2));
        const auto record = reader.run_record(0, 1);
        INFO(record.message);
        REQUIRE(record.status == "complete");
        std::string text;
        for (int64_t i = 0; i < prompt.n_visible(); ++i) {
            if (!std::isnan(record.scores[static_cast<size_t>(i)]))
                text += model.tokenizer().piece(prompt.ids[static_cast<size_t>(i)]);
        }
        return text;
    };
    const std::string context = "A lamp, a kettle.\nThe key is 4711. <|im_end|> Wörter…";
    const std::string without_control = "A lamp, a kettle.\nThe key is 4711.  Wörter…";
    for (const bool query_aware : {true, false}) {
        for (const bool templated : {true, false}) {
            for (const bool parses_special : {true, false}) {
                if (templated && !parses_special) continue;  // a template's text is always parsed
                for (const char* question : {"", "Which key?"}) {
                    CAPTURE(query_aware, templated, parses_special, question);
                    const auto prompt = engine::tokenize_prompt(model, context, question,
                                                                {.use_template = templated,
                                                                 .query_aware = query_aware,
                                                                 .n_new = 2,
                                                                 .parse_special = parses_special});
                    CHECK(free_tokens(prompt, prompt.n_visible() - 5) == (parses_special ? without_control : context));
                }
            }
        }
    }
    // A prompt from a trace has no separate context.
    auto stored = engine::tokenize_prompt(model, context, "Which key?", {.n_new = 2});
    stored.context.clear();
    CHECK(free_tokens(stored, stored.n_visible() - 5) == without_control);
}

TEST_CASE("llmlingua-2 without a usable classifier says what to do before anything is computed", "[classifier]") {
    const auto& model = tiny_model();
    const auto refusal = [&](const std::string& policy, const std::string& budget) {
        const TemporaryFolder folder;
        try {
            run_experiment(folder, "t.h5", model, {engine::tokenize_prompt(model, "A lamp.", "What?", {.n_new = 2})},
                           {plan(policy, budget)}, options_of(2));
        } catch (const engine::UsageError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK_THAT(refusal("llmlingua-2", "60"), Contains("model=FOLDER") && Contains("Download"));
    CHECK_THAT(refusal("llmlingua-2:model=/no/such/folder", "60"), Contains("/no/such/folder: is not a folder"));
    // A budget below the entries that are always kept fails only its run.
    const TemporaryFolder folder;
    const auto prompt = engine::tokenize_prompt(model, "A lamp.", "What?", {.n_new = 2});
    const auto reader = run_experiment(folder, "t.h5", model, {prompt},
                                       {plan("llmlingua-2:model=" + folder_of("bert"), "20")}, options_of(2));
    CHECK(reader.run(0, 1).status == "failed");
    CHECK_THAT(reader.run(0, 1).message, Contains("budget of 20") && Contains("always kept"));
    CHECK(reader.run(0, 0).status == "complete");

    auto options = options_of(1, false);
    options.keep_prefill = true;
    Session session(folder, "live.h5", model, {prompt}, {plan("full", "100%")}, options);
    session.experiment.run(session.prompts);
    const auto live = session.experiment.take_prefill();
    CHECK_THAT(live->obstacle(policies::parse_policy("llmlingua-2:model=x"), 20),
               Contains("before the model reads it"));
    CHECK_THAT(live->obstacle(policies::parse_policy("llmlingua-2"), 20), Contains("model=FOLDER"));
}

TEST_CASE("classifiers that are damaged or of another kind are refused with file, expected and found", "[classifier]") {
    using nlohmann::json;
    const auto says = [](auto change, const std::string& a, const std::string& b) {
        CHECK_THAT(message_after("bert", change), Contains(a) && Contains(b));
    };
    says([](const fs::path& f) { fs::remove(f / "model.safetensors"); }, "has no model.safetensors", "download");
    says([](const fs::path& f) { fs::rename(f / "model.safetensors", f / "pytorch_model.bin"); }, "pickled",
         "AutoModelForTokenClassification");
    says([](const fs::path& f) { fs::remove(f / "tokenizer.json"); }, "has no tokenizer.json", "AutoTokenizer");
    says([](const fs::path& f) { fs::remove(f / "config.json"); }, "config.json", "");
    says([](const fs::path& f) { fs::resize_file(f / "model.safetensors", 50000); }, "model.safetensors",
         "truncated or damaged");
    says([](const fs::path& f) { fs::resize_file(f / "model.safetensors", 100); }, "model.safetensors", "truncated");
    says(configured("/architectures", json::array({"BertForMaskedLM"})), "describes a BertForMaskedLM",
         "XLMRobertaForTokenClassification with 2 labels");
    says(configured("/architectures", nullptr), "has no architectures", "supported are");
    says(configured("/id2label", {{"0", "a"}, {"1", "b"}, {"2", "c"}}), "has 3 labels, expected 2", "config.json");
    says(configured("/hidden_act", "relu"), "hidden_act is \"relu\"", "expected \"gelu\"");
    says(configured("/num_attention_heads", 5), "hidden_size 32", "num_attention_heads 5");
    says(configured("/num_hidden_layers", 3), "has no tensor bert.encoder.layer.2.attention.self.query.weight (32, 32)",
         "config.json requires");
    says(configured("/intermediate_size", 41), "(40, 32)", "requires (41, 32)");
    says(configured("/vocab_size", 7), "word_embeddings.weight", "requires (7, 32)");
    says(configured("/max_position_embeddings", 2), "max_position_embeddings 2", "leaves no positions");
    CHECK(message_after("bert", [](const fs::path&) {}) == "opened");
}

TEST_CASE("a missing classifier fails only its run, shared or isolated", "[classifier]") {
    const auto& model = tiny_model();
    for (const bool isolated : {false, true}) {
        const TemporaryFolder folder;
        const auto reader =
            run_experiment(folder, "t.h5", model, {prompt_of_ids(some_ids(model, 60))},
                           {plan("llmlingua-2:model=no-such-folder", "20"), plan("streaming-llm", "20")},
                           options_of(4, true, isolated));
        CAPTURE(isolated);
        CHECK(reader.run(0, 1).status == "failed");
        CHECK(reader.run(0, 1).message.find("no-such-folder") != std::string::npos);
        CHECK(reader.run(0, 2).status == "complete");
    }
}
