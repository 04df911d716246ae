#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "tests/engine/experiment_on_disk.h"
#include "tests/policies/echo_maps_file.h"
#include "tests/policies/throwaway_policies.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

std::vector<uint32_t> kept_of(const std::vector<policies::Selection>& selections) {
    std::vector<uint32_t> kept;
    for (const auto& selection : selections) {
        for (const auto& row : selection.rows) kept.insert(kept.end(), row.begin(), row.end());
    }
    return kept;
}

std::vector<float> scores_of(const std::vector<policies::Selection>& selections) {
    std::vector<float> scores;
    for (const auto& selection : selections) {
        scores.insert(scores.end(), selection.scores.begin(), selection.scores.end());
        for (const double score : selection.scores_f64) scores.push_back(static_cast<float>(score));
    }
    return scores;
}

std::vector<float> scores_of(const trace::RunRecord& record) {
    std::vector<float> scores = record.scores;
    for (const double score : record.scores_f64) scores.push_back(static_cast<float>(score));
    return scores;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

std::vector<trace::RunRecord> records_of(engine::testing::Session& session) {
    std::vector<trace::RunRecord> records;
    session.experiment.on_run = [&](int, int, const trace::RunRecord& record) { records.push_back(record); };
    session.experiment.run(session.prompts);
    return records;
}

/// Keeps one entry more in each layer than in the one before, by a counter as in K-VEC.
class Growing : public policies::throwaway::KeepFirst, public policies::DecidesInOrder {
 public:
    policies::Selection select(policies::LayerObservations& observations) override {
        context_.budget = ++count_;
        return KeepFirst::select(observations);
    }

 private:
    int64_t count_ = 0;
};

}  // namespace

TEST_CASE("a live prefill decides like its runs, and with other parameters like a new run", "[default_model]") {
    const TemporaryFolder folder;
    const auto check = [&](const engine::Model& model, std::vector<engine::Prompt> prompts, const std::string& name) {
        std::vector<engine::RunPlan> plans{plan("full", "100%")};
        for (const auto& definition : policies::definitions()) {
            const auto policy = policies::parse_policy(definition.name).create();
            const bool changes_the_pass = policy->needs().answer_attention || policy->needs().keys_before_rope ||
                                          policy->needs().projection_inputs || definition.name == "dapq" ||
                                          definition.name.starts_with("laq") || definition.name == "gemfilter" ||
                                          definition.name == "kvslimmer" || definition.name == "asymkv";
            if (definition.name != "full" && !definition.needs_file && !changes_the_pass)
                plans.push_back(plan(definition.name, budget_for(definition, "48")));
        }
        auto options = options_of(1, false);
        options.window = 16;
        options.keep_prefill = true;
        Session session(folder, name + ".h5", model, prompts, plans, options);
        const auto records = records_of(session);
        const auto live = session.experiment.take_prefill();
        REQUIRE(live);
        CHECK(session.experiment.take_prefill() == nullptr);
        CHECK(live->n_tokens() == prompts[0].n_visible());
        CHECK(live->n_window() == 32);
        REQUIRE(records.size() == plans.size());
        for (size_t i = 0; i < plans.size(); ++i) {
            CAPTURE(name, records[i].label, records[i].message);
            REQUIRE(records[i].status == "complete");
            CHECK(live->obstacle(plans[i].spec, records[i].budget).empty());
            const auto selections = live->select(plans[i].spec, records[i].budget, options.seed);
            CHECK(kept_of(selections) == records[i].kept_indices);
            CHECK(same(scores_of(selections), scores_of(records[i])));
        }

        // The second prefill observes exactly what these policies need.
        const std::vector<engine::RunPlan> others{
            plan("full", "100%"),
            plan("snapkv:lambda=0.3,window=9", "40"),
            plan("snapkv:pooling=avg,kernel=3,reduce=max", "40"),
            plan("ada-snapkv:lambda=0.2,normalize=on,granularity=query_head", "40"),
            plan("aperturekv:lambda=0.1,window=5", "30"),
            plan("aperturekv:sharpen=none,lambda=0.3", "30"),
            plan("ada-pyramidkv:beta=3,lambda=0.45", "60"),
            plan("h2o:recent=5", "17"),
        };
        Session fresh(folder, name + "-fresh.h5", model, prompts, others, options_of(1, false));
        const auto expected = records_of(fresh);
        CHECK(fresh.experiment.take_prefill() == nullptr);
        for (int repetition = 0; repetition < 2; ++repetition) {
            for (size_t i = 0; i < others.size(); ++i) {
                CAPTURE(name, expected[i].label, expected[i].message);
                REQUIRE(expected[i].status == "complete");
                const auto selections = live->select(others[i].spec, expected[i].budget, 0);
                CHECK(kept_of(selections) == expected[i].kept_indices);
            }
        }
    };
    const auto& tiny = tiny_model();
    check(tiny, {prompt_of_ids(some_ids(tiny, 150))}, "tiny");
    // Policies see only the context.
    check(tiny, {prompt_of_ids(some_ids(tiny, 150), 130)}, "context");
    const auto ids = golden("engine/prompt_ids.json")["prompts"]["short"]["ids"].get<std::vector<int32_t>>();
    check(default_model_f32(), {prompt_of_ids(ids)}, "default");
}

TEST_CASE("a live prefill decides by the share for policies that count bytes, and with its model's maps") {
    const auto& model = tiny_model();
    const auto shape = model.transformer().shape();
    const policies::test::EchoMapsFile maps(
        policies::EchoLayout{shape.n_layers, shape.n_kv_heads, shape.head_dim, 2, 0}, model.fingerprint());
    const TemporaryFolder folder;
    auto options = options_of(1, false);
    options.keep_prefill = true;
    // 61.3 % of 99 tokens are between 60 and 61 entries.
    const std::vector<engine::RunPlan> plans{plan("full", "100%"),
                                             plan("echokv-hybrid:recent=8,maps=" + maps.path(), "0.9"),
                                             plan("think:recent=0", "0.613"), plan("minicache:retained=0", "0.613")};
    Session session(folder, "t.h5", model, {prompt_of_ids(some_ids(model, 99))}, plans, options);
    const auto records = records_of(session);
    const auto live = session.experiment.take_prefill();
    REQUIRE(live);
    for (size_t i = 1; i < plans.size(); ++i) {
        CAPTURE(records[i].label, records[i].message);
        REQUIRE(records[i].status == "complete");
        const auto selections = live->select(plans[i].spec, records[i].budget, 0, records[i].budget_fraction);
        uint64_t bytes = 0;
        for (const auto& selection : selections)
            for (const size_t row : policies::row_bytes_of(selection, shape.head_dim, sizeof(float))) bytes += row;
        CHECK(bytes == std::accumulate(records[i].cache_bytes_predicted.begin(), records[i].cache_bytes_predicted.end(),
                                       uint64_t{0}));
        CHECK(selections.back().stored);
    }
}

TEST_CASE("a live prefill says which policies it cannot serve, and why") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    auto options = options_of(1, false);
    options.keep_prefill = true;
    Session session(folder, "t.h5", model, {prompt_of_ids(some_ids(model, 100))}, {plan("full", "100%")}, options);
    session.experiment.run(session.prompts);
    const auto live = session.experiment.take_prefill();
    REQUIRE(live);
    size_t n_refused = 0;
    for (const auto& definition : policies::throwaway::definitions()) {
        const auto spec = policies::parse_parameters(definition, "");
        const bool is_refused = definition.name == "appends-tokens" || definition.name == "filters-prompt" ||
                                definition.name == "stores-shared";  // needs keys before RoPE
        CAPTURE(definition.name, live->obstacle(spec, 40));
        n_refused += is_refused;
        CHECK(live->obstacle(spec, 40).empty() == !is_refused);
        if (is_refused) CHECK_THROWS_AS(live->select(spec, 40, 0), std::invalid_argument);
    }
    CHECK(n_refused == 3);
    for (const char* name : {"dapq", "laq", "laq++", "gemfilter", "oracle"}) {
        CAPTURE(name);
        CHECK_FALSE(live->obstacle(policies::parse_policy(name), 40).empty());
        CHECK_THROWS_AS(live->select(policies::parse_policy(name), 40, 0), std::invalid_argument);
    }
    CHECK(live->obstacle(policies::parse_policy("snapkv:window=32"), 40).empty());
    CHECK(live->obstacle(policies::parse_policy("snapkv:window=33"), 40).find("32") != std::string::npos);
    CHECK(live->obstacle(policies::parse_policy("snapkv"), 20).empty());
    CHECK_THROWS_AS(live->select(policies::parse_policy("snapkv"), 20, 0), policies::BudgetError);
    // A policy whose layers depend on one another decides about them in order.
    const policies::Definition growing{
        .name = "growing",
        .title = "",
        .paper = "",
        .summary = "",
        .parameters = {},
        .create = [](const policies::ParameterValues&) { return policies::CreatedPolicy(std::make_unique<Growing>()); },
    };
    const auto grown = live->select(policies::parse_parameters(growing, ""), 40, 0);
    for (size_t layer = 0; layer < grown.size(); ++layer) CHECK(grown[layer].rows[0].size() == layer + 1);
    // With a budget of the whole prompt, every policy that is served decides, too.
    for (const auto& definition : policies::definitions()) {
        if (definition.needs_file || !live->obstacle(policies::parse_policy(definition.name), 100).empty()) continue;
        const auto all = live->select(policies::parse_policy(definition.name), 100, 0);
        CHECK(kept_of(all).size() == 100u * static_cast<size_t>(model.transformer().shape().n_layers) *
                                         static_cast<size_t>(model.transformer().shape().n_kv_heads));
    }
}
