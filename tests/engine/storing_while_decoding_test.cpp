// Caches that store tokens in parts while they decode, and switch between parts and whole keys and values.
#include <catch2/catch.hpp>
#include <numeric>

#include "engine/common/engine_error.h"
#include "engine/decode/decode.h"
#include "engine/prefill/prefill.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/relative_difference.h"
#include "tests/engine/same_bits.h"
#include "tests/policies/throwaway_policies.h"
#include "trace/checks/check_trace.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using namespace kvscope::policies;
using Catch::Matchers::Contains;

namespace {

/// Keeps every token without loss. Tokens between the first and the last ones are stored as a block of keys before RoPE
/// that all heads share, and as values in two parts with a map each.
class StoresTail : public throwaway::KeepFirst, public StoresWhileDecoding {
 public:
    explicit StoresTail(const ParameterValues& values)
        : whole_{values.integer("first"), values.integer("last")},
          switching_(parse_storage_switching(values.text("form"), values.text("switches"))),
          fault_(values.text("fault")) {}

    Needs needs() const override {
        Needs needs;
        needs.keys_before_rope = true;
        return needs;
    }
    bool stores_parts() const override { return !middle().empty(); }
    bool stores_while_decoding() const override { return true; }
    std::optional<WholeTokens> whole_tokens(int) const override { return whole_; }
    StorageSwitching switching() const override { return switching_; }

    Selection select(LayerObservations& observations) override {
        Selection selection;
        selection.rows.assign(static_cast<size_t>(context_.shape.n_kv_heads), throwaway::all_of(context_.n_tokens));
        if (!stores_parts()) return selection;
        selection.stored = described(middle(), middle(), observations.keys_before_rope, observations.values);
        for (auto& row : selection.stored->rows)
            for (const uint32_t token : selection.rows[0])
                if (token < middle().front() || token > middle().back()) row.plain.push_back(token);
        return selection;
    }

    StoredLayer store(const ReducedTokens& tokens) override {
        std::vector<uint32_t> places(tokens.positions.size());
        std::iota(places.begin(), places.end(), 0u);
        const std::vector<uint32_t> positions(tokens.positions.begin(), tokens.positions.end());
        StoredLayer layer = described(places, positions, tokens.keys_before_rope, tokens.values);
        const bool is_first = n_stored_++ == 0;
        if (fault_ == "throws") throw std::runtime_error("nothing is stored here");
        if (fault_ == "other" && !is_first) layer.rows[0].stored[0].values.parts.pop_back();
        if (fault_ == "plain") layer.rows[0].plain.push_back(positions[0]);
        if (fault_ == "moved") layer.rows[0].stored[0].positions[0] += 1;
        if (fault_ == "short") layer.rows[0].stored[0].values.parts[0].numbers.pop_back();
        if (fault_ == "none") layer.rows.clear();
        return layer;
    }

 private:
    std::vector<uint32_t> middle() const {
        std::vector<uint32_t> tokens;
        for (int64_t token = whole_.first; token < context_.n_tokens - whole_.last && !switching_.begins_full; ++token)
            tokens.push_back(static_cast<uint32_t>(token));
        return tokens;
    }

    StoredLayer described(const std::vector<uint32_t>& places, const std::vector<uint32_t>& positions,
                          const EntriesView& keys, const EntriesView& values) const {
        const int d = context_.shape.head_dim, heads = context_.shape.n_kv_heads;
        StoredLayer layer;
        auto block = std::make_shared<StoredBlock>();
        block->width = heads * d;
        for (const uint32_t place : places)
            for (int head = 0; head < heads; ++head)
                for (int c = 0; c < d; ++c) block->numbers.push_back(throwaway::element(keys, head, place, c, d));
        layer.blocks = {block};
        for (int head = 0; head < heads; ++head) {
            StoredEntries entries{.positions = positions};
            entries.keys = {.parts = {{.width = d, .block = block, .first_column = head * d}}, .before_rope = true};
            for (const int first : {0, d / 2}) {
                StoredPart part{.width = d / 2, .map = half(first)};
                for (const uint32_t place : places)
                    for (int c = first; c < first + d / 2; ++c)
                        part.numbers.push_back(throwaway::element(values, head, place, c, d));
                entries.values.parts.push_back(std::move(part));
            }
            layer.rows.push_back({.stored = {std::move(entries)}});
        }
        return layer;
    }

    /// Returns the map (d / 2, d) to the channels from `first` on.
    std::shared_ptr<const Matrix> half(int first) const {
        auto& known = halves_[first];
        if (known) return known;
        const int d = context_.shape.head_dim;
        auto map = std::make_shared<Matrix>(Matrix{d / 2, d, std::vector<float>(static_cast<size_t>(d / 2 * d))});
        for (int c = 0; c < d / 2; ++c) map->numbers[static_cast<size_t>(c * d + first + c)] = 1;
        return known = map;
    }

    WholeTokens whole_;
    StorageSwitching switching_;
    std::string fault_;
    int n_stored_ = 0;
    mutable std::map<int, std::shared_ptr<const Matrix>> halves_;
};

engine::RunPlan tail(const std::vector<std::pair<std::string, std::string>>& parameters = {}) {
    static const auto definition = throwaway::definition<StoresTail>(
        "stores-tail",
        {integer_parameter("first", 3, {}, "-"), integer_parameter("last", 9, {}, "-"),
         storage_switching_parameters()[0], storage_switching_parameters()[1], text_parameter("fault", "", "-")});
    engine::RunPlan plan{{&definition, ParameterValues(definition.parameters)}, parse_budget("100%")};
    for (const auto& [name, value] : parameters) plan.spec.values.set(name, value);
    return plan;
}

std::vector<engine::RunPlan> many_tails() {
    return {tail(),
            tail({{"last", "0"}}),
            tail({{"last", "200"}}),
            tail({{"last", "126"}}),
            tail({{"switches", "2/3/7"}}),
            tail({{"form", "full"}}),
            tail({{"form", "full"}, {"switches", "0/4"}}),
            tail({{"switches", "5/100"}, {"first", "0"}, {"last", "1"}})};
}

/// Returns a policy's cache of a prompt of n tokens.
engine::RunCache read_prompt(const engine::Model& model, Policy& policy, int n) {
    const auto& transformer = model.transformer();
    RunContext context;
    context.shape = transformer.shape();
    context.n_tokens = context.budget = n;
    policy.begin(context);
    engine::RunCache cache(transformer.on_processor(), Granularity::kv_head, Positions::prompt, false);
    engine::PrefillRequest request;
    const auto ids = some_ids(model, n);
    request.ids = ids;
    request.needs = policy.needs();
    request.needs.entries = true;
    engine::SilentProgress progress;
    engine::prefill(
        transformer, request,
        [&](engine::PrefillLayer& layer) { cache.compress(layer.layer, policy.select(layer.prompt), layer.dense); },
        progress);
    return cache;
}

constexpr int64_t n_answer = 12;

}  // namespace

TEST_CASE("attention to tokens that are stored while decoding does not change", "[decoding]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn"})
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            CAPTURE(name, kernels::name_of(dtype));
            const auto model = small_model(name, dtype);
            const TemporaryFolder folder;
            const std::vector<engine::Prompt> prompts{prompt_of_ids(some_ids(model, 130)),
                                                      prompt_of_ids(some_ids(model, 120, 4), 90)};
            const auto plans = many_tails();
            const auto shared = run_experiment(folder, "s.h5", model, prompts, plans, options_of(n_answer));
            for (const auto& problem : trace::find_problems(folder.path() / "s.h5"))
                FAIL_CHECK(problem.path << ": " << problem.found);
            const auto isolated =
                run_experiment(folder, "i.h5", model, prompts, plans, options_of(n_answer, true, true));
            for (int prompt = 0; prompt < 2; ++prompt) {
                const auto full = shared.run_record(prompt, 0);
                for (int run = 1; run <= static_cast<int>(plans.size()); ++run) {
                    const auto record = shared.run_record(prompt, run), alone = isolated.run_record(prompt, run);
                    CAPTURE(prompt, run, record.label, record.message);
                    REQUIRE(record.status == "complete");
                    REQUIRE(alone.status == "complete");
                    CHECK(record.output_ids == alone.output_ids);
                    CHECK(same_bits(record.step_kl, alone.step_kl));
                    const bool is_exact = dtype == kernels::DType::f32;
                    if (is_exact) CHECK(record.output_ids == full.output_ids);
                    for (const float kl : record.step_kl) CHECK(kl < (is_exact ? 1e-6 : 0.02));
                    for (const float error : record.output_error) CHECK(error < (is_exact ? 1e-4 : 0.03));
                }
            }
        }
}

TEST_CASE("a run records when its cache changed its form", "[decoding]") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto reader = run_experiment(folder, "s.h5", model, {prompt_of_ids(some_ids(model, 60))}, many_tails(),
                                       options_of(n_answer, true));
    const auto switches_of = [&](int run) {
        const auto record = reader.run_record(0, run);
        std::vector<int> found;
        for (size_t i = 0; i < record.switch_steps.size(); ++i)
            found.push_back(static_cast<int>(record.switch_steps[i]) * (record.switch_is_full.at(i) ? 1 : -1));
        return found;
    };
    CHECK(switches_of(1).empty());
    CHECK(switches_of(5) == std::vector{2, -3, 7});
    CHECK(switches_of(6).empty());
    CHECK(switches_of(7) == std::vector{-0, 4});
    CHECK(reader.run_record(0, 7).switch_is_full == std::vector<uint8_t>{0, 1});
    CHECK(switches_of(8) == std::vector{5});  // the answer ends before step 100
}

TEST_CASE("a cache changes its form on request, and so does its comparison", "[decoding]") {
    const auto& model = tiny_model();
    engine::SilentProgress progress;
    engine::Experiment experiment(model, engine::with_full_run_first({tail(), tail({{"switches", "4"}})}),
                                  options_of(n_answer, true), progress);
    int asked = 0;
    experiment.ask_switch = [&](int run, bool is_full) {
        CHECK(run > 0);
        if (run != 1) return false;
        ++asked;
        CHECK(is_full == (asked > 3 && asked <= 6));
        return asked == 3 || asked == 6;
    };
    std::map<int, trace::RunRecord> records;
    experiment.on_run = [&](int, int run, const trace::RunRecord& record) { records[run] = record; };
    const std::vector<engine::Prompt> prompts{prompt_of_ids(some_ids(model, 60))};
    experiment.run(prompts);
    CHECK(asked == n_answer - 1);
    CHECK(records[1].switch_steps == std::vector<uint32_t>{2, 5});
    CHECK(records[1].switch_is_full == std::vector<uint8_t>{1, 0});
    CHECK(records[2].switch_steps == std::vector<uint32_t>{4});
    CHECK(records[1].output_ids == records[0].output_ids);
    for (const float kl : records[1].step_kl) CHECK(kl < 1e-6);
}

TEST_CASE("a copy of a cache that stores tokens while decoding is independent", "[decoding]") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        const auto model = small_model("llama3-gqa-sharded", dtype);
        const auto& transformer = model.transformer();
        const auto policy = tail().spec.create();
        engine::RunCache cache = read_prompt(model, *policy, 40);
        const auto decode = [&](engine::RunCache& into, int64_t step, unsigned seed) {
            const auto tokens = some_ids(model, 8, seed);
            engine::Sequence sequence{&into, 40 + step, step, engine::after_attention_of(policy)};
            std::vector<float> last;
            for (const int32_t& token : tokens) {
                const std::span<const int32_t> one(&token, 1);
                const at::Tensor residual = engine::feed_tokens(transformer, {&sequence, 1}, {&one, 1}).cpu();
                REQUIRE(sequence.error.empty());
                last.assign(residual.const_data_ptr<float>(), residual.const_data_ptr<float>() + residual.numel());
            }
            return last;
        };
        cache.reserve(20);
        const size_t at_first = cache.layer_bytes(0);
        decode(cache, 0, 3);
        CHECK(cache.n_plain(0, 0) == 3 + 9);
        CHECK(cache.n_entries(0, 0) == 48);
        CHECK(cache.layer_bytes(0) == at_first + 8 * cache.n_rows() * 2 * 16 * kernels::size_of(dtype));
        auto copy = cache.clone(20), second = cache.clone(20);
        const auto expected = decode(copy, 8, 4);
        CHECK(cache.n_entries(0, 0) == 48);
        decode(cache, 8, 5);
        CHECK(same_bits(decode(second, 8, 4), expected));
        CHECK(copy.n_entries(1, 1) == 56);
    }
}

TEST_CASE("memory of whole entries and of their parts is released", "[decoding]") {
    const auto& model = tiny_model();
    const auto& transformer = model.transformer();
    const auto policy = tail({{"form", "full"}, {"switches", "1/3/5"}}).spec.create();
    engine::RunCache cache = read_prompt(model, *policy, 300);
    cache.reserve(20);
    const size_t full = cache.layer_bytes(1);
    engine::Sequence sequence{&cache, 300, 0, engine::after_attention_of(policy)};
    sequence.switching = engine::switching_of(sequence.acting);
    std::vector<size_t> bytes;
    for (const int32_t& token : some_ids(model, 8, 2)) {
        const std::span<const int32_t> one(&token, 1);
        engine::feed_tokens(transformer, {&sequence, 1}, {&one, 1});
        REQUIRE(sequence.error.empty());
        bytes.push_back(cache.layer_bytes(1));
        const auto copy = cache.clone(20);
        CHECK(copy.layer_bytes(1) <= bytes.back() + 4096);
    }
    for (const size_t held : bytes) CHECK(held < full * 21 / 20);
    CHECK(bytes[6] < full * 21 / 20);
}

TEST_CASE("an invalid description while decoding fails only its run", "[decoding]") {
    const auto& model = tiny_model();
    const std::vector<std::pair<std::string, std::string>> faults{{"throws", "nothing is stored here"},
                                                                  {"other", "described differently"},
                                                                  {"plain", "position"},
                                                                  {"moved", "position"},
                                                                  {"short", "numbers"},
                                                                  {"none", "rows"}};
    std::vector<engine::RunPlan> plans{tail()};
    for (const auto& [fault, message] : faults) plans.push_back(tail({{"fault", fault}}));
    const TemporaryFolder folder;
    const auto reader =
        run_experiment(folder, "f.h5", model, {prompt_of_ids(some_ids(model, 60))}, plans, options_of(n_answer, true));
    CHECK(reader.run_record(0, 1).status == "complete");
    for (size_t i = 0; i < faults.size(); ++i) {
        const auto record = reader.run_record(0, static_cast<int>(i) + 2);
        CAPTURE(faults[i].first);
        CHECK(record.status == "failed");
        CHECK_THAT(record.message, Contains(faults[i].second));
        CHECK(record.output_ids.size() < n_answer);
    }
}

TEST_CASE("renumbered keys are rotated without applying the attention factor again", "[decoding]") {
    const auto model = small_model("qwen2-sliding-yarn", kernels::DType::f32);
    REQUIRE(model.transformer().attention_factor() != 1.0f);
    const TemporaryFolder folder;
    const auto reader = run_experiment(folder, "y.h5", model, {prompt_of_ids(some_ids(model, 30))},
                                       {plan("streaming-llm:positions=cache,rolling=off", "100%"),
                                        plan("streaming-llm:positions=cache,rolling=on", "100")},
                                       options_of(n_answer, true));
    for (const int run : {1, 2}) {
        const auto record = reader.run_record(0, run);
        CAPTURE(record.label, record.message);
        REQUIRE(record.status == "complete");
        for (const float kl : record.step_kl) CHECK(kl < 1e-6);
        for (const float error : record.output_error) CHECK(error < 1e-4);
    }
}
