#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <numeric>

#include "common/stopped.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/kept_difference.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

/// Greatest difference of f32 logits from the reference. Tokens with a smaller gap may change places.
constexpr double logit_rounding = 1e-3;

/// Returns the `budget` positions with the most attention, ascending. Of equal ones, the lower position counts.
std::vector<uint32_t> best_positions(const float* attention, size_t n, size_t budget) {
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return attention[a] > attention[b]; });
    order.resize(budget);
    std::sort(order.begin(), order.end());
    return order;
}

/// Returns, for each layer and KV head, how many kept entries are among the `budget` most attended ones of the answer.
std::vector<size_t> hits(const trace::Kept& kept, const std::vector<float>& answer_attention, size_t n, size_t budget) {
    std::vector<size_t> found;
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        for (size_t row = 0; row < kept.n_rows; ++row) {
            const auto gold = best_positions(answer_attention.data() + (layer * kept.n_rows + row) * n, n, budget);
            const auto mine = kept.row(layer, row);
            std::vector<uint32_t> both;
            std::set_intersection(gold.begin(), gold.end(), mine.begin(), mine.end(), std::back_inserter(both));
            found.push_back(both.size());
        }
    }
    return found;
}

template <class T>
std::vector<T> optional_list(const nlohmann::json& one, const char* name) {
    return one.contains(name) ? one[name].get<std::vector<T>>() : std::vector<T>{};
}

void check_answer_attention(const trace::RunRecord& full, const nlohmann::json& expected, size_t n_layers, size_t n) {
    const size_t per_layer = full.answer_attention.size() / n_layers;
    double largest = 0.0;
    for (const auto& [layer, heads] : expected.items()) {
        size_t at = std::stoul(layer) * per_layer;
        for (const auto& head : heads) {
            REQUIRE(head.size() == n);
            for (const auto& value : head) {
                const double difference = std::abs(full.answer_attention[at++] / value.get<double>() - 1.0);
                largest = std::max(largest, difference);
            }
        }
    }
    std::printf("       answer attention: relative difference at most %.1e\n", largest);
    CHECK(largest < 1e-3);
}

void check_kl_attention_lost(const trace::RunRecord& run, const nlohmann::json& expected, size_t n_layers, size_t n) {
    REQUIRE(run.kl_attention_lost.size() == n_layers * n);
    std::vector<double> tokens(n, 0.0), layers(n_layers, 0.0);
    for (size_t i = 0; i < n_layers * n; ++i) {
        tokens[i % n] += static_cast<double>(run.kl_attention_lost[i]) / static_cast<double>(n_layers);
        layers[i / n] += static_cast<double>(run.kl_attention_lost[i]);
    }
    const auto expected_tokens = expected["tokens"].get<std::vector<double>>();
    const auto expected_layers = expected["layers"].get<std::vector<double>>();
    REQUIRE(expected_tokens.size() == n);
    REQUIRE(expected_layers.size() == n_layers);
    const double most = *std::max_element(expected_tokens.begin(), expected_tokens.end());
    CHECK(most > 0);
    double worst = 0;
    for (size_t token = 0; token < n; ++token)
        worst = std::max(worst, std::abs(tokens[token] - expected_tokens[token]) / most);
    std::printf("       %s: KL-weighted attention lost within %.1e of the largest\n", run.label.c_str(), worst);
    CHECK(worst < 2e-3);
    for (size_t layer = 0; layer < n_layers; ++layer)
        CHECK(layers[layer] == Approx(expected_layers[layer]).epsilon(5e-3).margin(1e-6));
}

void compare_changed_passes(const std::string& name) {
    const auto document = golden("engine/pass_changes.json");
    const auto& reference = document["prompts"][name];
    const auto ids = golden("engine/prompt_ids.json")["prompts"][name]["ids"].get<std::vector<int32_t>>();
    const auto& model = default_model_f32();
    std::vector<engine::RunPlan> plans;
    for (const auto& one : reference["cases"])
        plans.push_back(plan(one["policy"].get<std::string>(), std::to_string(one["budget"].get<int>())));
    const TemporaryFolder folder;
    const auto reader = run_experiment(folder, "t.h5", model, {prompt_of_ids(ids)}, plans,
                                       options_of(document["max_tokens"].get<int64_t>()));
    const auto full = reader.run_record(0, 0);
    CHECK(full.output_ids == reference["full"]["output_ids"].get<std::vector<int32_t>>());
    check_answer_attention(full, reference["full"]["answer_attention"],
                           static_cast<size_t>(model.transformer().shape().n_layers), ids.size());

    for (size_t i = 0; i < plans.size(); ++i) {
        const auto record = reader.run_record(0, static_cast<int>(i) + 1);
        const auto& one = reference["cases"][i];
        CAPTURE(name, record.label, record.message);
        REQUIRE(record.status == "complete");
        CHECK(record.pseudo_ids == optional_list<int32_t>(one, "pseudo_ids"));
        CHECK(record.lookahead_ids == optional_list<int32_t>(one, "lookahead_ids"));

        const auto kept = reader.kept(0, static_cast<int>(i) + 1);
        const auto difference = difference_of(*kept, one);
        CHECK(difference.unexplained == 0);
        CHECK(static_cast<double>(difference.differing) <= 0.001 * static_cast<double>(difference.entries));

        const auto budget = one["budget"].get<size_t>();
        const auto found = hits(*kept, full.answer_attention, ids.size(), budget);
        size_t at = 0, missed = 0, expected_hits = 0;
        for (const auto& layer : one["recall"]) {
            for (const auto& share : layer) {
                const auto expected = static_cast<size_t>(std::lround(share.get<double>() * double(budget)));
                expected_hits += expected;
                missed += expected > found[at] ? expected - found[at] : found[at] - expected;
                ++at;
            }
        }
        REQUIRE(at == found.size());
        CHECK(missed <= 2 * difference.differing + 2);

        if (one.contains("kl_attention_lost"))
            check_kl_attention_lost(record, one["kl_attention_lost"],
                                    static_cast<size_t>(model.transformer().shape().n_layers), ids.size());
        const auto kl = one["step_kl"].get<std::vector<float>>();
        REQUIRE(record.step_kl.size() == kl.size());
        double worst = 0.0;
        const bool same_entries = difference.differing == 0;
        for (size_t t = 0; t < kl.size() && same_entries; ++t) {
            CAPTURE(t);
            worst = std::max(worst, std::abs(double(record.step_kl[t]) - double(kl[t])));
            CHECK(record.step_kl[t] == Approx(kl[t]).epsilon(1e-3).margin(2e-5));
            if (one["agreement_margin"].get<double>() > logit_rounding)
                CHECK(int(record.step_agreement[t]) == one["step_agreement"][t].get<int>());
        }
        const bool comparable = same_entries && one["output_margin"].get<double>() > logit_rounding;
        if (comparable) CHECK(record.output_ids == one["output_ids"].get<std::vector<int32_t>>());
        std::printf(
            "%-8s %-36s %6zu entries, %zu differ within rounding, %zu beyond; step KL to %.0e; answer %s; "
            "recall %.3f\n",
            name.c_str(), plans[i].label().c_str(), difference.entries, difference.differing - difference.unexplained,
            difference.unexplained, worst, comparable ? "equal" : "not compared",
            double(std::accumulate(found.begin(), found.end(), size_t{0})) / double(found.size() * budget));
    }
}

/// Returns the policies that change the pass or need several passes, with settings that use all code paths.
std::vector<engine::RunPlan> pass_changing(const std::string& budget) {
    std::vector<engine::RunPlan> plans;
    for (const char* policy :
         {"dapq", "dapq:content=random-tokens,pseudo_tokens=5", "dapq:offset=-20", "dapq:positions=cache",
          "dapq:granularity=query_head", "laq", "laq:window=8,lookahead=3", "laq:granularity=query_head", "laq++",
          "laq++:window=8,positions=cache", "gemfilter", "gemfilter:layer=0", "cam", "cam:merge=4,denominator=max",
          "cam:granularity=query_head", "cam:positions=cache", "oracle", "oracle:granularity=query_head"})
        plans.push_back(plan(policy, budget));
    return plans;
}

void check_alike(const trace::RunRecord& a, const trace::RunRecord& b) {
    CAPTURE(a.label, a.message, b.message);
    REQUIRE(a.status == "complete");
    REQUIRE(b.status == "complete");
    CHECK(a.pseudo_ids == b.pseudo_ids);
    CHECK(a.lookahead_ids == b.lookahead_ids);
    CHECK(a.kept_offsets == b.kept_offsets);
    CHECK(a.kept_indices == b.kept_indices);
    CHECK(a.output_ids == b.output_ids);
    REQUIRE(a.step_kl.size() == b.step_kl.size());
    for (size_t t = 0; t < a.step_kl.size(); ++t)
        CHECK(a.step_kl[t] == Approx(b.step_kl[t]).epsilon(1e-3).margin(1e-5));
}

/// Cancels at the beginning of a phase.
class StopsAt final : public engine::Progress {
 public:
    explicit StopsAt(std::string phase) : phase_(std::move(phase)) {}
    void begin(std::string_view phase, int64_t, std::string_view) override {
        if (phase == phase_) stop_.request_stop();
    }
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    std::stop_token stop_token() const override { return stop_.get_token(); }

 private:
    std::string phase_;
    std::stop_source stop_;
};

}  // namespace

// Reference: NumPy and transformers in f64 (scripts/golden/pass_changes.py).
TEST_CASE("policies that change the pass keep, generate and diverge as the reference on the short prompt",
          "[arithmetic][default_model]") {
    compare_changed_passes("short");
}

TEST_CASE("policies that change the pass keep, generate and diverge as the reference on the rewrite prompt",
          "[arithmetic][default_model]") {
    compare_changed_passes("rewrite");
}

TEST_CASE("policies that change the pass give the same results in shared and in isolated mode") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto plans = pass_changing("40");
    const auto prompt = prompt_of_ids(some_ids(model, 150));
    auto options = options_of(10);
    options.seed = 5;
    const auto shared = run_experiment(folder, "s.h5", model, {prompt}, plans, options);
    options.isolated = true;
    const auto isolated = run_experiment(folder, "i.h5", model, {prompt}, plans, options);
    REQUIRE(shared.n_runs(0) == static_cast<int>(plans.size()) + 1);
    for (int run = 0; run < shared.n_runs(0); ++run)
        check_alike(shared.run_record(0, run), isolated.run_record(0, run));
    // Random draws depend on the seed.
    const auto other = run_experiment(folder, "o.h5", model, {prompt}, {plans[1]}, options_of(10));
    CHECK(other.run_record(0, 1).pseudo_ids != shared.run_record(0, 2).pseudo_ids);
}

TEST_CASE("runs that append, look ahead, filter or wait do not affect one another") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto prompt = prompt_of_ids(some_ids(model, 130));
    // Three runs with a common tail, others with their own, and drafts of different lengths in one batch.
    std::vector<engine::RunPlan> plans{plan("dapq", "40"), plan("dapq", "60"), plan("dapq", "80"),
                                       plan("dapq:reduce=max", "40"), plan("dapq:offset=-30", "40")};
    for (const auto& one : pass_changing("50")) plans.push_back(one);
    const auto together = run_experiment(folder, "t.h5", model, {prompt}, plans, options_of(6));
    for (size_t i = 0; i < plans.size(); ++i) {
        const auto alone =
            run_experiment(folder, "a" + std::to_string(i) + ".h5", model, {prompt}, {plans[i]}, options_of(6));
        const auto a = alone.run_record(0, 1), t = together.run_record(0, static_cast<int>(i) + 1);
        check_alike(a, t);
        CHECK(a.scores.size() == t.scores.size());
    }
    const auto scores = [&](int run) { return together.run_record(0, run).scores; };
    CHECK(scores(1) == scores(2));
    CHECK(scores(1) == scores(3));
    CHECK(scores(1) != scores(5));
}

TEST_CASE("with several questions, the oracle keeps the tokens that all answers attend to most") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const size_t n = 90, budget = 30;
    const auto context = some_ids(model, static_cast<int>(n));
    std::vector<engine::Prompt> prompts;
    for (const unsigned seed : {2u, 3u}) {
        auto ids = context;
        for (const int32_t id : some_ids(model, 5 + static_cast<int>(seed), seed)) ids.push_back(id);
        prompts.push_back(prompt_of_ids(ids, static_cast<int64_t>(n)));
    }
    const std::vector<engine::RunPlan> plans{plan("snapkv:window=8", "30"), plan("oracle", "30")};
    for (const bool isolated : {false, true}) {
        CAPTURE(isolated);
        const auto reader =
            run_experiment(folder, isolated ? "i.h5" : "s.h5", model, prompts, plans, options_of(8, true, isolated));
        REQUIRE(reader.run(0, 2).status == "complete");
        REQUIRE(reader.run(1, 2).status == "complete");
        auto sum = reader.run_record(0, 0).answer_attention;
        const auto second = reader.run_record(1, 0).answer_attention;
        REQUIRE(sum.size() == second.size());
        CHECK(sum != second);
        std::transform(sum.begin(), sum.end(), second.begin(), sum.begin(), std::plus<>());
        for (const int prompt : {0, 1}) {
            const auto kept = reader.kept(prompt, 2);
            for (const size_t found : hits(*kept, sum, n, budget)) CHECK(found == budget);
        }
        // Keeps more of the attention of both answers than a policy that does not know them.
        const auto guess = hits(*reader.kept(0, 1), sum, n, budget);
        CHECK(std::accumulate(guess.begin(), guess.end(), size_t{0}) < guess.size() * budget);
    }
}

TEST_CASE("work that is cancelled during a lookahead or between runs can be resumed") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const std::vector<engine::Prompt> prompts{prompt_of_ids(some_ids(model, 100))};
    const auto plans = engine::with_full_run_first(
        {plan("laq:window=8", "30"), plan("dapq", "30"), plan("oracle", "30"), plan("gemfilter", "30")});
    const auto whole = run_experiment(folder, "w.h5", model, prompts, plans, options_of(6));
    for (const int stop_behind : {-1, 0, 2}) {  // the run after which to cancel; -1: during the lookahead
        CAPTURE(stop_behind);
        const auto options = options_of(6, true, stop_behind >= 0);
        const auto name = "t" + std::to_string(stop_behind) + ".h5";
        {
            StopsAt progress(stop_behind < 0 ? "lookahead" : "");
            trace::Writer writer(folder.path() / name, engine::recipe_json(model, prompts, plans, options));
            engine::Experiment experiment(model, plans, options, writer, progress);
            experiment.on_run = [&](int, int run, const trace::RunRecord&) {
                if (run == stop_behind) progress.begin("", 0, "");
            };
            CHECK_THROWS_AS(experiment.run(prompts), Stopped);
        }
        const auto resumed = run_experiment(folder, name, model, prompts, plans, options);
        REQUIRE(resumed.n_runs(0) == whole.n_runs(0));
        for (int run = 0; run < whole.n_runs(0); ++run)
            check_alike(resumed.run_record(0, run), whole.run_record(0, run));
    }
}

TEST_CASE("an impossible change of the pass fails only its run, with a reason") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const struct {
        const char* policy;
        std::vector<std::string> says;
    } cases[] = {
        {"dapq:offset=-101", {"offset=-101", "100 tokens", "-100"}},
        {"dapq:first=4,last=4", {"first=4", "last=4", "32"}},
        {"dapq:first=40", {"first=40", "32"}},
        {"gemfilter:layer=99", {"99", std::to_string(model.transformer().shape().n_layers - 1)}},
    };
    std::vector<engine::RunPlan> plans;
    for (const auto& one : cases) plans.push_back(plan(one.policy, "40"));
    plans.push_back(plan("dapq:offset=-100", "40"));
    const auto reader =
        run_experiment(folder, "t.h5", model, {prompt_of_ids(some_ids(model, 100))}, plans, options_of(4));
    for (size_t i = 0; i < std::size(cases); ++i) {
        const auto& run = reader.run(0, static_cast<int>(i) + 1);
        CAPTURE(run.label, run.message);
        CHECK(run.status == "failed");
        for (const auto& part : cases[i].says) CHECK(run.message.find(part) != std::string::npos);
    }
    CHECK(reader.run(0, static_cast<int>(plans.size())).status == "complete");
}
