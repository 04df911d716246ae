#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "policies/interface/registry.h"
#include "policies/interface/validation.h"

using namespace kvscope::policies;

namespace {

std::vector<float> divided(const nlohmann::json& integers, float by) {
    std::vector<float> values;
    for (const auto& integer : integers) values.push_back(integer.get<float>() / by);
    return values;
}

/// A layer, and what one call of `merge` sees of it.
struct Layer {
    ModelShape shape;
    std::vector<float> keys, values, masses, attention, outputs;

    MergeObservations observations() const {
        MergeObservations seen;
        seen.shape = shape;
        seen.n_entries = static_cast<int64_t>(masses.size());
        const int64_t stride = seen.n_entries * shape.head_dim;
        seen.keys = {keys.data(), kvscope::kernels::DType::f32, kvscope::kernels::Device::cpu, stride};
        seen.values = {values.data(), kvscope::kernels::DType::f32, kvscope::kernels::Device::cpu, stride};
        seen.masses = masses;
        seen.n_queries = 1;
        seen.attention = attention;
        seen.outputs = outputs;
        return seen;
    }
};

std::unique_ptr<Policy> begun(const std::string& text, int64_t budget, const ModelShape& shape) {
    auto policy = parse_policy(text).create();
    RunContext context;
    context.shape = shape;
    context.n_tokens = 1000;
    context.budget = budget;
    policy->begin(context);
    return policy;
}

Layer uniform(int64_t n) {
    Layer layer{{1, 2, 1, 4}, {}, {}, {}, {}, {}};
    layer.keys.assign(static_cast<size_t>(n) * 4, 1.0f);
    layer.values.assign(static_cast<size_t>(n) * 4, 1.0f);
    layer.masses.assign(static_cast<size_t>(n), 1.0f);
    layer.attention.assign(static_cast<size_t>(2 * n), 1.0f / static_cast<float>(n));
    layer.outputs.assign(8, 0.5f);
    return layer;
}

}  // namespace

TEST_CASE("pairs and merged keys equal those of scripts/golden/kvslimmer.py", "[kvslimmer]") {
    nlohmann::json data;
    std::ifstream(KVSCOPE_TEST_DATA "/policies/merges.json") >> data;
    int outside = 0;
    for (const auto& one : data["cases"]) {
        const Layer layer{{1, data["n_heads"], data["n_kv_heads"], data["head_dim"]},
                          divided(one["keys"], 4),
                          divided(one["values"], 4),
                          divided(one["masses"], 1),
                          divided(one["attention"], 4096),
                          divided(one["outputs"], 4)};
        CAPTURE(one["n_entries"], one["n_merges"]);
        const auto policy = begun("kvslimmer:sinks=" + std::to_string(one["sinks"].get<int>()), 200, layer.shape);
        const auto observations = layer.observations();
        const Merges merges = policy->merge(observations, one["n_merges"]);
        require_merges("it", observations, one["n_merges"], merges);
        CHECK(merges.first == one["first"].get<std::vector<uint32_t>>());
        REQUIRE(merges.keys.size() == one["merged"].size());
        for (size_t i = 0; i < merges.keys.size(); ++i)
            CHECK(merges.keys[i] == Approx(one["merged"][i].get<double>()).epsilon(1e-5).margin(1e-5));
        outside += one["outside"].get<int>();
        const auto asymkv = begun("asymkv:sinks=" + std::to_string(one["sinks"].get<int>()), 200, layer.shape);
        const std::vector<float> gradients = divided(one["gradients"], 64);
        auto with_gradients = layer.observations();
        with_gradients.key_gradients = gradients;
        const Merges by_gradients = asymkv->merge(with_gradients, one["n_merges"]);
        CHECK(by_gradients.first == merges.first);
        REQUIRE(by_gradients.keys.size() == one["asymkv"].size());
        for (size_t i = 0; i < by_gradients.keys.size(); ++i)
            CHECK(by_gradients.keys[i] == Approx(one["asymkv"][i].get<double>()).epsilon(1e-5).margin(1e-6));
    }
    CHECK(data["cases"].size() == 5);
    CHECK(outside > 0);  // weights that leave [0, 1] are among them
}

TEST_CASE("pairs of equal mass: recent ones go first, of overlapping ones the lower score", "[kvslimmer]") {
    const Layer layer = uniform(11);
    const auto first = [&](const std::string& policy, int64_t n) {
        return begun(policy, 5, layer.shape)->merge(layer.observations(), n).first;
    };
    // exp(i / gamma) grows with i: the last pair has the lowest score, its neighbour overlaps.
    CHECK(first("kvslimmer:sinks=3", 1) == std::vector<uint32_t>{9});
    CHECK(first("kvslimmer:sinks=3", 3) == std::vector<uint32_t>{5, 7, 9});
    // Four disjoint pairs fit behind three sinks, however many are asked for.
    CHECK(first("kvslimmer:sinks=3", 8) == std::vector<uint32_t>{3, 5, 7, 9});
    Layer heavy = layer;
    heavy.attention[9] = 0.9f;
    CHECK(begun("kvslimmer:sinks=3", 5, layer.shape)->merge(heavy.observations(), 1).first == std::vector<uint32_t>{7});
    // However fast the scores fall, the recent ones go first.
    CHECK(first("kvslimmer:sinks=3,gamma=0.001", 2) == std::vector<uint32_t>{7, 9});
    // Pairs of large entries are spared.
    Layer large = layer;
    large.masses[10] = 5.0f;
    CHECK(begun("kvslimmer:sinks=3", 5, layer.shape)->merge(large.observations(), 1).first == std::vector<uint32_t>{8});
}

TEST_CASE("where the Hessian says nothing the merged key is the mean", "[kvslimmer]") {
    Layer layer = uniform(6);
    layer.outputs.assign(8, 1.0f);  // every value is the output: all three vectors vanish
    for (size_t i = 0; i < layer.keys.size(); ++i) layer.keys[i] = static_cast<float>(i / 4);
    const Merges merges = begun("kvslimmer:sinks=0", 3, layer.shape)->merge(layer.observations(), 1);
    REQUIRE(merges.first == std::vector<uint32_t>{4});
    for (const float number : merges.keys) CHECK(number == 4.5f);
}

TEST_CASE("chunks follow the budget, and a budget of sinks alone is refused", "[kvslimmer]") {
    const auto chunk = [](const std::string& text, int64_t budget) {
        RunContext context;
        context.budget = budget;
        return parse_policy(text).create()->plan(context).chunk;
    };
    CHECK(chunk("kvslimmer", 2048) == 512);
    CHECK(chunk("kvslimmer", 256) == 64);
    CHECK(chunk("kvslimmer", 257) == 65);
    CHECK(chunk("kvslimmer", 1) == 1);
    CHECK(chunk("kvslimmer", 1 << 30) == 512);
    CHECK(chunk("kvslimmer:chunk=7", 256) == 7);
    CHECK_THROWS_AS(begun("kvslimmer", 32, {}), BudgetError);
    CHECK_THROWS_WITH(begun("kvslimmer", 33, {}),
                      Catch::Matchers::Contains("32 are sinks") && Catch::Matchers::Contains("at least 34"));
    CHECK_NOTHROW(begun("kvslimmer", 34, {}));
    CHECK_NOTHROW(begun("kvslimmer:sinks=0", 2, {}));
    CHECK_NOTHROW(begun("kvslimmer", 1000, {}));
}

TEST_CASE("an attention that is not a number is an error", "[kvslimmer]") {
    Layer layer = uniform(11);
    layer.attention[6] = NAN;
    CHECK_THROWS_AS(begun("kvslimmer:sinks=3", 5, layer.shape)->merge(layer.observations(), 1), ScoreError);
}

TEST_CASE("merges that no cache can follow are refused", "[kvslimmer]") {
    const Layer layer = uniform(6);
    const auto refused = [&](Merges merges, int64_t n) {
        CHECK_THROWS_AS(require_merges("it", layer.observations(), n, merges), SelectionError);
    };
    const std::vector<float> key(4, 0.0f), two(8, 0.0f);
    CHECK_NOTHROW(require_merges("it", layer.observations(), 2, {{1, 3}, two}));
    refused({{}, {}}, 2);
    refused({{1, 3}, two}, 1);
    refused({{1, 2}, two}, 2);
    refused({{3, 1}, two}, 2);
    refused({{5}, key}, 2);
    refused({{4000000000u}, key}, 2);
    refused({{1}, two}, 2);
    refused({{1}, {0, 0, NAN, 0}}, 2);
}
