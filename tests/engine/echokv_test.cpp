// EchoKV compared with its definition in transformers and NumPy, f64 (scripts/golden/echokv.py).
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/common/engine_error.h"
#include "engine/echo/echo_training.h"
#include "engine/echo/echo_tuning.h"
#include "tests/engine/reference_runs.h"
#include "tests/engine/threads.h"
#include "tests/policies/echo_maps_file.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using policies::EchoLayout;
using policies::test::EchoMapsFile;

namespace {

EchoLayout layout_of(const engine::Model& model, int group, int local) {
    const auto shape = model.transformer().shape();
    return {shape.n_layers, shape.n_kv_heads, shape.head_dim, group, local};
}

engine::RunPlan plan_with(const EchoMapsFile& maps, const std::string& parameters = {}) {
    auto made = plan("echokv:maps=" + maps.path() + parameters, "100%");
    made.budget.share = *made.spec.own_share();
    return made;
}

}  // namespace

TEST_CASE("EchoKV has the reference's output, and its bytes are those of the stored numbers",
          "[echokv][arithmetic][default_model]") {
    const auto& model = default_model_f32();
    std::vector<std::unique_ptr<EchoMapsFile>> files;
    const auto plan_of = [&](const nlohmann::json& one) {
        files.push_back(std::make_unique<EchoMapsFile>(layout_of(model, one["group_layers"], one["local_dims"]),
                                                       model.fingerprint()));
        return plan_with(*files.back(), ",recent=" + std::to_string(one["recent"].get<int>()));
    };
    const auto check_bytes = [&](const trace::RunRecord& record, const nlohmann::json& one) {
        const int local = one["local_dims"];
        const auto rebuilt = one["rebuilt_layers"].get<std::vector<size_t>>();
        for (size_t layer = 0; layer < record.cache_bytes.size(); ++layer) {
            const bool is_rebuilt = std::count(rebuilt.begin(), rebuilt.end(), layer) > 0;
            // Number of channels that a head stores itself, of keys and of values.
            const int named = is_rebuilt ? 2 * (local % layout_of(model, 1, 0).head_dim) : 0;
            CHECK(record.cache_bytes[layer] == one["bytes"][layer].get<uint64_t>() * sizeof(float) +
                                                   static_cast<uint64_t>(named) * sizeof(uint16_t));
        }
    };
    const auto check_kept = [](const trace::Kept& kept, size_t n_tokens, const nlohmann::json& one) {
        const auto exact = one["exact_tokens"].get<std::vector<uint32_t>>();
        for (uint32_t token = 0; token < n_tokens; ++token) {
            const bool is_exact = std::count(exact.begin(), exact.end(), token) > 0;
            CHECK(kept.fate(0, 0, token).kind == trace::TokenFate::Kind::whole);
            CHECK(kept.fate(1, 2, token).kind ==
                  (is_exact ? trace::TokenFate::Kind::whole : trace::TokenFate::Kind::rebuilt));
        }
    };
    check_reference_runs("engine/echokv_runs.json", plan_of, check_bytes, check_kept);
}

TEST_CASE("EchoKV gives the same answers in both modes and with any other runs, in f32 and bf16", "[echokv]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn"})
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            CAPTURE(name, kernels::name_of(dtype));
            const auto model = small_model(name, dtype);
            const EchoMapsFile maps(layout_of(model, 2, 4), model.fingerprint());
            check_independence(model, {plan("snapkv:window=8", "40"), plan_with(maps, ",recent=9"),
                                       plan_with(maps, ",recent=30,rebuild=values")});
        }
}

TEST_CASE("the maps of least squares have the reference's errors, on the text and on another one",
          "[echokv][arithmetic][default_model]") {
    const auto& model = default_model_f32();
    const auto expected = golden("engine/echo_training.json");
    const auto ids = expected["text"]["ids"].get<std::vector<int32_t>>();
    const auto held_out = expected["held_out"]["ids"].get<std::vector<int32_t>>();
    engine::SilentProgress progress;
    for (const auto& one : expected["cases"]) {
        const EchoLayout layout = layout_of(model, one["group_layers"], one["local_dims"]);
        CAPTURE(layout.group, layout.local);
        const engine::EchoTrainingOptions options{
            .ratio = layout.model_ratio(), .sequence = 2048, .skipped = 0, .ridge = expected["ridge"]};
        const auto training = engine::train_echo_maps(model, ids, options, progress);
        REQUIRE(training.maps.layout == layout);
        CHECK(training.n_tokens == static_cast<int64_t>(ids.size()));
        const auto other = engine::measure_echokv_map_errors(model, training.maps, held_out, options, progress);
        const auto layers = one["layers"].get<std::vector<int>>();
        REQUIRE(training.errors.size() == layers.size());
        for (size_t i = 0; i < layers.size(); ++i) {
            CAPTURE(layers[i]);
            const auto& error = training.errors.at(layers[i]);
            CHECK(error.keys == Approx(one["text"]["keys"][i].get<double>()).epsilon(1e-3));
            CHECK(error.values == Approx(one["text"]["values"][i].get<double>()).epsilon(1e-3));
            CHECK(other.at(layers[i]).keys == Approx(one["held_out"]["keys"][i].get<double>()).epsilon(2e-3));
            CHECK(other.at(layers[i]).values == Approx(one["held_out"]["values"][i].get<double>()).epsilon(2e-3));
        }
    }
}

TEST_CASE("maps predict from one of two inputs or from both, and both have the least error", "[echokv]") {
    const auto& model = tiny_model();
    const auto ids = some_ids(model, 900);
    engine::SilentProgress progress;
    engine::EchoTrainingOptions options{.ratio = 0.75, .sequence = 100, .ridge = 1e-6};
    const auto both = engine::train_echo_maps(model, ids, options, progress);
    REQUIRE(both.maps.layout.local * 2 == both.maps.layout.width());
    const auto d = static_cast<size_t>(both.maps.layout.width());
    for (const auto inputs : {engine::EchoInputs::first_layer, engine::EchoInputs::own}) {
        options.inputs = inputs;
        const auto one = engine::train_echo_maps(model, ids, options, progress);
        const bool is_own = inputs == engine::EchoInputs::own;
        for (const auto& [layer, maps] : one.maps.layers) {
            CHECK(one.errors.at(layer).keys > both.errors.at(layer).keys);
            CHECK(one.errors.at(layer).values > both.errors.at(layer).values);
            CHECK(one.errors.at(layer).keys < 1);
            const auto columns = static_cast<size_t>(maps.keys.n_columns);
            for (size_t i = 0; i < maps.keys.numbers.size(); ++i) {
                const bool is_given = (i / columns >= d) == is_own;
                if (!is_given) CHECK(maps.keys.numbers[i] == 0);
            }
            CHECK(std::count(maps.keys.numbers.begin(), maps.keys.numbers.end(), 0.0f) ==
                  static_cast<std::ptrdiff_t>((is_own ? d : d / 2) * columns));
        }
    }
    options.ratio = 0.5;
    CHECK_THROWS_WITH(engine::train_echo_maps(model, ids, options, progress),
                      Catch::Matchers::Contains("store no numbers of their own"));
}

TEST_CASE("training does not depend on the number of threads, and refuses impossible settings", "[echokv]") {
    const auto& model = tiny_model();
    const auto ids = some_ids(model, 500);
    engine::SilentProgress progress;
    engine::EchoTrainingOptions options{.ratio = 0.5, .sequence = 100};
    const auto several = engine::train_echo_maps(model, ids, options, progress);
    {
        const Threads one(1);
        const auto alone = engine::train_echo_maps(model, ids, options, progress);
        for (const auto& [layer, maps] : several.maps.layers) {
            CHECK(same_bits(alone.maps.layers.at(layer).keys.numbers, maps.keys.numbers));
            CHECK(same_bits(alone.maps.layers.at(layer).values.numbers, maps.values.numbers));
        }
    }
    CHECK(several.n_tokens == 5 * 96);
    // Dependent inputs with a negligible ridge.
    const std::vector<int32_t> same(400, ids[0]);
    const auto degenerate = engine::train_echo_maps(model, same, {.ratio = 0.5, .sequence = 100, .ridge = 0}, progress);
    for (const auto& [layer, error] : degenerate.errors) {
        CHECK(error.keys < 1);
        CHECK(error.values < 1);
    }
    const std::span<const int32_t> few(ids.data(), 20);
    CHECK_THROWS_AS(engine::train_echo_maps(model, few, options, progress), engine::UsageError);
    options.sequence = 3;
    CHECK_THROWS_AS(engine::train_echo_maps(model, ids, options, progress), engine::UsageError);
    options = {.ratio = 1.5};
    CHECK_THROWS_AS(engine::train_echo_maps(model, ids, options, progress), policies::EchoMapsError);
    options = {.ratio = 0.99, .sequence = 100};
    CHECK_THROWS_AS(engine::train_echo_maps(model, ids, options, progress), engine::UsageError);
}

namespace {

/// Cancels after the given number of sequences.
class StopsAfterSequences final : public engine::Progress {
 public:
    explicit StopsAfterSequences(int64_t sequences) : sequences_(sequences) {}
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t done) override {
        if (done >= sequences_) stop_.request_stop();
    }
    void message(std::string_view text) override { messages += std::string(text) + "\n"; }
    std::stop_token stop_token() const override { return stop_.get_token(); }
    std::string messages;

 private:
    int64_t sequences_;
    std::stop_source stop_;
};

bool same_maps(const policies::EchoMaps& a, const policies::EchoMaps& b) {
    if (a.layers.size() != b.layers.size()) return false;
    for (const auto& [layer, maps] : a.layers)
        if (!same_bits(maps.keys.numbers, b.layers.at(layer).keys.numbers) ||
            !same_bits(maps.values.numbers, b.layers.at(layer).values.numbers))
            return false;
    return true;
}

}  // namespace

TEST_CASE("cancelled training continues to the same maps, but not with another text or a damaged file", "[echokv]") {
    const auto& model = tiny_model();
    const auto ids = some_ids(model, 500), others = some_ids(model, 500, 2);
    const TemporaryFolder folder;
    engine::EchoTrainingOptions options{.ratio = 0.5, .sequence = 100};
    engine::SilentProgress silent;
    const auto whole = engine::train_echo_maps(model, ids, options, silent);
    options.state = folder.path() / "state";
    StopsAfterSequences stops(2);
    CHECK_THROWS_AS(engine::train_echo_maps(model, ids, options, stops), Stopped);
    REQUIRE(std::filesystem::exists(options.state));
    std::filesystem::copy_file(options.state, folder.path() / "copy");
    const auto again = [&](const std::vector<int32_t>& text) {
        StopsAfterSequences never(1000);
        const auto training = engine::train_echo_maps(model, text, options, never);
        return std::pair{same_maps(training.maps, whole.maps), never.messages};
    };
    CHECK(again(ids) == std::pair{true, std::string("resuming after 2 of 5 sequences\n")});
    const auto put_back = [&] {
        std::filesystem::copy_file(folder.path() / "copy", options.state,
                                   std::filesystem::copy_options::overwrite_existing);
    };
    put_back();
    CHECK(again(others) == std::pair{false, std::string()});
    put_back();
    options.sequence = 125;
    CHECK(again(ids).second.empty());
    options.sequence = 100;
    put_back();
    std::filesystem::resize_file(options.state, std::filesystem::file_size(options.state) - 3);
    CHECK(again(ids) == std::pair{true, std::string()});
    put_back();
    {
        std::fstream file(options.state, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(options.state) / 2));
        file.write(std::string(80, '\0').data(), 80);
    }
    CHECK(again(ids) == std::pair{true, std::string()});
    std::ofstream(options.state) << "something else";
    CHECK_THROWS_AS(again(ids), engine::UsageError);
    // If the state cannot be saved, the work continues with a message.
    options.state = folder.path() / "none" / "state";
    const auto [same, messages] = again(ids);
    CHECK(same);
    CHECK(messages.find("could not be saved") != std::string::npos);
}

TEST_CASE("tuning decreases each loss", "[echokv]") {
    const auto loss = GENERATE(engine::EchoLoss::keys_values, engine::EchoLoss::outputs, engine::EchoLoss::qk_kl);
    CAPTURE(engine::echo_loss_name(loss));
    const auto& model = tiny_model();
    const auto ids = some_ids(model, 60);
    engine::SilentProgress progress;
    const engine::EchoTuningOptions once{.steps = 1, .sequence = 60, .rate = 1e-4, .loss = loss};
    const policies::EchoMaps before = policies::test::formula_maps(layout_of(model, 2, 4), model.fingerprint());
    policies::EchoMaps after = before;
    const auto first = engine::tune_echo_maps(model, after, ids, once, progress).at(0);
    CHECK(first.error == engine::evaluate_echo_loss(model, before, ids, once, progress));
    CHECK(first.rate == 1e-4);
    // AdamW's first step is the rate times the sign of the gradient, plus the decay. Finite differences give the sign.
    int n_checked = 0;
    for (const bool of_keys : {true, false}) {
        const auto matrix = [&](policies::EchoMaps& maps) -> policies::Matrix& {
            return of_keys ? maps.layers.at(1).keys : maps.layers.at(1).values;
        };
        policies::EchoMaps changed = before;
        if (!of_keys && loss == engine::EchoLoss::qk_kl) {
            CHECK(same_bits(matrix(after).numbers, matrix(changed).numbers));
            continue;
        }
        for (size_t at = 0; at < matrix(changed).numbers.size(); at += 37) {
            float& number = matrix(changed).numbers[at];
            const float was = number;
            const auto loss_at = [&](float value) {
                number = value;
                const double found = engine::evaluate_echo_loss(model, changed, ids, once, progress);
                number = was;
                return loss == engine::EchoLoss::qk_kl ? found : found * found;
            };
            const double slope = (loss_at(was + 0.02f) - loss_at(was - 0.02f)) / 0.04;
            if (std::abs(slope) < 2e-3) continue;
            ++n_checked;
            CAPTURE(of_keys, at, slope);
            const double step = matrix(after).numbers[at] - was * (1.0 - 1e-4 * 0.01);
            CHECK(step == Approx(slope > 0 ? -1e-4 : 1e-4).epsilon(0.05));
        }
    }
    CHECK(n_checked > 10);
}

TEST_CASE("gradient descent has PyTorch's losses in each step", "[echokv][arithmetic][default_model]") {
    const auto& model = default_model_f32();
    const auto expected = golden("engine/echo_descent.json");
    const auto ids = expected["ids"].get<std::vector<int32_t>>();
    engine::SilentProgress progress;
    for (const auto& one : expected["cases"]) {
        engine::EchoTuningOptions options{.steps = expected["steps"],
                                          .sequence = expected["sequence"],
                                          .skipped = expected["skipped"],
                                          .rate = expected["rate"],
                                          .seed = expected["seed"]};
        for (const auto loss : {engine::EchoLoss::keys_values, engine::EchoLoss::outputs, engine::EchoLoss::qk_kl})
            if (engine::echo_loss_name(loss) == one["loss_of"]) options.loss = loss;
        const EchoLayout layout = layout_of(model, one["group_layers"], one["local_dims"]);
        CAPTURE(layout.group, layout.local, engine::echo_loss_name(options.loss));
        policies::EchoMaps maps = options.loss == engine::EchoLoss::keys_values
                                      ? engine::make_random_echo_maps(model, layout.model_ratio(), options.seed)
                                      : policies::test::formula_maps(layout, model.fingerprint());
        REQUIRE(maps.layout == layout);
        const auto steps = engine::tune_echo_maps(model, maps, ids, options, progress);
        REQUIRE(steps.size() == one["loss"].size());
        for (size_t t = 0; t < steps.size(); ++t) {
            CAPTURE(t);
            CHECK(steps[t].loss == Approx(one["loss"][t].get<double>()).epsilon(1e-3));
            CHECK(steps[t].error == Approx(one["error"][t].get<double>()).epsilon(1e-3));
        }
    }
}

TEST_CASE("gradient descent on keys and values approaches the loss of least squares from above", "[echokv]") {
    const auto& model = tiny_model();
    const auto ids = some_ids(model, 500);
    engine::SilentProgress progress;
    const engine::EchoTrainingOptions whole{.ratio = 0.5, .sequence = 100};
    const auto solved = engine::train_echo_maps(model, ids, whole, progress);
    const auto after = [&](int64_t n_steps) {
        policies::EchoMaps maps = engine::make_random_echo_maps(model, 0.5, 42);
        const engine::EchoTuningOptions options{
            .steps = n_steps, .sequence = 100, .rate = 1e-2, .loss = engine::EchoLoss::keys_values};
        const auto steps = engine::tune_echo_maps(model, maps, ids, options, progress);
        if (n_steps > 0) {
            CHECK(steps.back().loss < steps.front().loss);
            CHECK(maps.facts.at("stage1").find("AdamW on keys-values") == 0);
        }
        return engine::measure_echokv_map_errors(model, maps, ids, whole, progress);
    };
    const auto begun = after(0), some = after(40), many = after(400);
    for (const auto& [layer, least] : solved.errors) {
        CAPTURE(layer, least.keys, least.values);
        for (const auto of : {&engine::EchoError::keys, &engine::EchoError::values}) {
            CHECK(some.at(layer).*of < begun.at(layer).*of);
            CHECK(many.at(layer).*of < some.at(layer).*of);
            CHECK(many.at(layer).*of > 0.999 * (least.*of));
            CHECK(many.at(layer).*of < 1.1 * (least.*of));
        }
    }
    CHECK_THROWS_AS(engine::make_random_echo_maps(model, 0.99, 42), engine::UsageError);
}

TEST_CASE("cancelled gradient descent continues to the same maps and losses", "[echokv]") {
    const auto loss = GENERATE(engine::EchoLoss::keys_values, engine::EchoLoss::outputs, engine::EchoLoss::qk_kl);
    CAPTURE(engine::echo_loss_name(loss));
    const auto& model = tiny_model();
    const auto ids = some_ids(model, 300), others = some_ids(model, 300, 2);
    const TemporaryFolder folder;
    engine::EchoTuningOptions options{.steps = 12, .sequence = 50, .rate = 5e-3, .loss = loss};
    const policies::EchoMaps before = policies::test::formula_maps(layout_of(model, 2, 4), model.fingerprint());
    const auto tuned = [&](policies::EchoMaps maps, const std::vector<int32_t>& text, engine::Progress& progress) {
        auto steps = engine::tune_echo_maps(model, maps, text, options, progress);
        return std::pair{std::move(maps), std::move(steps)};
    };
    engine::SilentProgress silent;
    const auto whole = tuned(before, ids, silent);
    options.state = folder.path() / "state";
    for (const int64_t stop : {5, 3}) {  // the second call continues after the first: 8 steps are done
        StopsAfterSequences stops(stop);
        CHECK_THROWS_AS(tuned(before, ids, stops), Stopped);
    }
    std::filesystem::copy_file(options.state, folder.path() / "copy");
    const auto again = [&](const policies::EchoMaps& maps, const std::vector<int32_t>& text) {
        std::filesystem::copy_file(folder.path() / "copy", options.state,
                                   std::filesystem::copy_options::overwrite_existing);
        int n_done = 0;
        options.on_step = [&](const engine::EchoStep&) { ++n_done; };
        StopsAfterSequences never(1000);
        const auto found = tuned(maps, text, never);
        CHECK(never.messages == (n_done == 4 ? "resuming after 8 of 12 steps\n" : ""));
        return std::tuple{same_maps(found.first, whole.first), found.second == whole.second, n_done};
    };
    CHECK(again(before, ids) == std::tuple{true, true, 4});
    CHECK(again(before, others) == std::tuple{false, false, 12});
    policies::EchoMaps changed = before;
    changed.layers.at(1).keys.numbers[7] += 1e-3f;
    CHECK(std::get<2>(again(changed, ids)) == 12);
    options.rate = 4e-3;
    CHECK(std::get<2>(again(before, ids)) == 12);
    options.rate = 5e-3;
    // All steps are done already.
    StopsAfterSequences never(1000);
    REQUIRE(std::get<2>(again(before, ids)) == 4);
    CHECK(same_maps(tuned(before, ids, never).first, whole.first));
    CHECK(never.messages == "resuming after 12 of 12 steps\n");
    std::filesystem::resize_file(folder.path() / "copy", std::filesystem::file_size(folder.path() / "copy") - 3);
    CHECK(again(before, ids) == std::tuple{true, true, 12});
    engine::refuse_foreign_state_file(options.state);
    std::ofstream(options.state) << "something else";
    CHECK_THROWS_AS(tuned(before, ids, never), engine::UsageError);
    CHECK_THROWS_AS(engine::refuse_foreign_state_file(options.state), engine::UsageError);
}

TEST_CASE("tuned maps have a smaller loss, for any number of threads", "[echokv]") {
    const auto loss = GENERATE(engine::EchoLoss::keys_values, engine::EchoLoss::outputs, engine::EchoLoss::qk_kl);
    CAPTURE(engine::echo_loss_name(loss));
    const auto& model = tiny_model();
    const auto ids = some_ids(model, 400);
    engine::SilentProgress progress;
    const engine::EchoTuningOptions options{.steps = 60, .sequence = 50, .rate = 5e-3, .loss = loss};
    const policies::EchoMaps before = policies::test::formula_maps(layout_of(model, 2, 4), model.fingerprint());
    policies::EchoMaps after = before;
    const auto losses = engine::tune_echo_maps(model, after, ids, options, progress);
    CHECK(losses.size() == 60);
    const char* stage = loss == engine::EchoLoss::keys_values ? "stage1" : "stage2";
    CHECK(after.facts.at(stage).find(std::string(engine::echo_loss_name(loss)) + ", 60 steps") != std::string::npos);
    CHECK(engine::evaluate_echo_loss(model, after, ids, options, progress) <
          0.9 * engine::evaluate_echo_loss(model, before, ids, options, progress));
    {
        const Threads one(1);
        policies::EchoMaps again = before;
        CHECK(engine::tune_echo_maps(model, again, ids, options, progress) == losses);
        CHECK(same_maps(again, after));
    }
    policies::EchoMaps same = before;
    CHECK(engine::tune_echo_maps(model, same, ids, {.steps = 0, .sequence = 50}, progress).empty());
    CHECK(same_maps(same, before));
    CHECK_THROWS_AS(engine::tune_echo_maps(model, same, ids, {.steps = 5, .sequence = 500}, progress),
                    engine::UsageError);
    CHECK_THROWS_AS(engine::tune_echo_maps(model, same, ids, {.steps = 5, .sequence = 4}, progress),
                    engine::UsageError);
    StopsAfterSequences stops(3);
    CHECK_THROWS_AS(engine::tune_echo_maps(model, same, ids, options, stops), Stopped);
    CHECK(same_maps(same, before));
}
