#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "policies/api/stored_layer.h"
#include "tests/policies/random_cache.h"
#include "tests/policies/throwaway_policies.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

TEST_CASE("the interface supports a policy that appends tokens to the prompt", "[shapes]") {
    const ModelShape shape{1, 4, 2, 8};
    Cache cache = random_cache(shape, 12, 5);
    Cache behind = random_cache(shape, 3, 6);
    const CreatedPolicy policy = throwaway::spec("appends-tokens").create();
    RunContext context = cache.context(5);
    const std::vector<int32_t> ids{7, 8};
    context.token_ids = ids;
    const AppendedTokens appended = policy.as<AppendsTokens>()->appended(context);
    CHECK(appended.ids == std::vector<int32_t>{7, 8, 7});
    CHECK(appended.positions == std::vector<int64_t>{12, 13, 14});
    LayerObservations& observations = *cache.observations[0];
    observations.set_appended(behind.layers[0].queries,
                              {behind.layers[0].keys.data(), kvscope::kernels::DType::f32, 3 * 8}, 3, 3);
    policy->begin(context);
    const Selection selection = policy->select(observations);
    for (int row = 0; row < 2; ++row) {
        CHECK(selection.rows[static_cast<size_t>(row)].size() == 5);
        double mass = 0.0;  // attention of three queries in each of two heads, without the appended keys
        for (int j = 0; j < 12; ++j) mass += selection.scores[static_cast<size_t>(row * 12 + j)];
        CHECK(mass > 0.0);
        CHECK(mass < 6.0);
    }
}

TEST_CASE("the interface supports a policy that filters the prompt", "[shapes]") {
    Cache cache = random_cache({3, 4, 2, 8}, 12, 5);
    const CreatedPolicy policy = throwaway::spec("filters-prompt").create();
    const RunContext context = cache.context(4);
    policy->begin(context);
    CHECK(std::get<FilterLayer>(policy.as<FiltersPrompt>()->filter(context)).layer == 1);
    const std::vector<uint32_t> kept = policy->select(*cache.observations[1]).rows[0];
    CHECK(kept.size() == 4);
    CHECK(kept.back() == 11);
    CHECK(std::is_sorted(kept.begin(), kept.end()));
}

TEST_CASE("policies implement only the interfaces that they need", "[shapes]") {
    const CreatedPolicy policy = parse_policy("snapkv").create();
    CHECK(policy.as<FiltersPrompt>() == nullptr);
    CHECK(policy.as<LooksAhead>() == nullptr);
    CHECK(policy.as<Gathers>() != nullptr);
    CHECK_THROWS_AS(throwaway::spec("stores-channels").create()->select_from_scores(0, {}), std::logic_error);
}

TEST_CASE("the interface supports entries with some channels only", "[shapes]") {
    Cache cache = random_cache({1, 4, 2, 8}, 12, 5);
    const CreatedPolicy policy = throwaway::spec("stores-channels").create();
    const Selection selection = select_all(policy, cache, 11)[0];
    const auto& layer = selection.stored;
    REQUIRE(layer);
    require_valid_storage("it", 0, cache.observations[0]->shape, selection);
    const StoredRow& row = layer->rows.at(1);
    REQUIRE(row.stored.size() == 1);
    CHECK(row.stored[0].positions == std::vector<uint32_t>{0, 1, 2});
    CHECK(row.plain == std::vector<uint32_t>{3, 4, 5, 6, 7, 8, 9, 10});
    CHECK(row.stored[0].keys.parts[0].channels == std::vector<uint16_t>{0, 2, 4, 6});
    // With a sliding window, entries are found by position.
    for (const bool plain : {false, true}) {
        Selection turned = selection;
        StoredRow& other = turned.stored->rows[1];
        auto& positions = plain ? other.plain : other.stored[0].positions;
        std::reverse(positions.begin(), positions.end());
        CHECK_THROWS_WITH(require_valid_storage("it", 0, cache.observations[0]->shape, turned),
                          Catch::Matchers::Contains("row 1: expected positions in ascending order"));
    }
    // 8 whole entries; otherwise 3 of 4 key channels and all 8 value channels, plus the channel indices.
    CHECK(row_bytes_of(selection, 8, 2)[1] == 8 * 2 * 8 * 2 + 3 * (4 + 8) * 2 + 4 * 2);
}

TEST_CASE("the interface supports vectors rebuilt by maps", "[shapes]") {
    Cache cache = random_cache({1, 4, 2, 8}, 12, 5);
    const CreatedPolicy policy = throwaway::spec("stores-mapped").create();
    const Selection selection = select_all(policy, cache, 6)[0];
    const auto& layer = selection.stored;
    REQUIRE(layer);
    require_valid_storage("it", 0, cache.observations[0]->shape, selection);
    const StoredEntries& entries = layer->rows.at(1).stored.at(0);
    for (size_t i = 0; i < 6; ++i) {
        for (size_t c = 0; c < 8; ++c) {
            double sum = 0;
            for (const StoredPart& part : entries.keys.parts)
                for (size_t k = 0; k < 4; ++k)
                    sum += static_cast<double>(part.map->numbers[k * 8 + c]) *
                           static_cast<double>(part.numbers[i * 4 + k]);
            CHECK(sum == Approx(cache.layers[0].keys[12 * 8 + i * 8 + c]).margin(1e-6));
        }
    }
    CHECK(row_bytes_of(selection, 8, 2)[1] == 6 * 2 * 8 * 2);  // the maps belong to the model
}

TEST_CASE("the interface supports merged entries: n equal merged entries attend like n single ones", "[shapes]") {
    Cache cache = random_cache({1, 4, 2, 8}, 5, 5);
    Layer& layer = cache.layers[0];
    // Entry 1 equals entry 0.
    for (int c = 0; c < 8; ++c) layer.keys[static_cast<size_t>(8 + c)] = layer.keys[static_cast<size_t>(c)];
    const CreatedPolicy policy = throwaway::spec("merges-pairs").create();
    const Selection selection = select_all(policy, cache, 3)[0];
    CHECK(selection.rows[0] == std::vector<uint32_t>{1, 3, 4});
    const auto& stored = selection.stored;
    REQUIRE(stored);
    require_valid_storage("it", 0, cache.observations[0]->shape, selection);
    // The first pair and the single token have unchanged vectors.
    const StoredEntries& pairs = stored->rows[0].stored.at(0);
    CHECK(pairs.masses == std::vector<float>{2, 2});
    CHECK(stored->rows[0].plain == std::vector<uint32_t>{4});
    CHECK(row_bytes_of(selection, 8, 2)[0] == 3 * 2 * 8 * 2 + 2 * 4);
    std::vector<float> keys(pairs.keys.parts[0].numbers.begin(), pairs.keys.parts[0].numbers.begin() + 8);
    std::vector<float> values(pairs.values.parts[0].numbers.begin(), pairs.values.parts[0].numbers.begin() + 8);
    keys.insert(keys.end(), layer.keys.begin() + 2 * 8, layer.keys.begin() + 3 * 8);
    values.insert(values.end(), layer.values.begin() + 2 * 8, layer.values.begin() + 3 * 8);
    const std::vector<float> n{2, 1};
    // o = sum exp(e) v / sum n exp(e) equals attention over the three plain entries.
    const float* query = layer.queries.data();
    const std::vector<double> plain = layer.attention(0, query, 3);
    double weights[2], sum = 0.0;
    for (int i = 0; i < 2; ++i) {
        double dot = 0.0;
        for (int c = 0; c < 8; ++c) dot += static_cast<double>(query[c]) * keys[static_cast<size_t>(i * 8 + c)];
        sum += n[static_cast<size_t>(i)] * (weights[i] = std::exp(dot / std::sqrt(8.0)));
    }
    for (int c = 0; c < 8; ++c) {
        double expected = 0.0, found = 0.0;
        for (int j = 0; j < 3; ++j)
            expected += plain[static_cast<size_t>(j)] * layer.values[static_cast<size_t>(j * 8 + c)];
        for (int i = 0; i < 2; ++i) found += weights[i] * values[static_cast<size_t>(i * 8 + c)] / sum;
        CHECK(found == Approx(expected).margin(1e-6));
    }
}

TEST_CASE("the interface supports a policy that acts at each step", "[shapes]") {
    const CreatedPolicy policy = throwaway::spec("drops-least-attended").create();
    Cache cache = random_cache({1, 4, 2, 8}, 12, 5);
    CHECK(select_all(policy, cache, 3)[0].rows[1] == std::vector<uint32_t>{0, 1, 2});
    const std::vector<uint32_t> positions{0, 1, 2, 12};
    const std::vector<float> attention{.4f, .1f, .3f, .2f, /**/ .4f, .3f, .0f, .3f};
    StepObservations step;
    step.position = 12;
    step.rows = {{positions, attention, 2}, {positions, attention, 2}};
    CHECK(policy.as<EvictsWhileDecoding>()->step(step) == StepEvictions{{2}, {2}});
}

TEST_CASE("interfaces that exclude each other cannot be combined", "[shapes]") {
    struct StoresAndEvicts : Policy, StoresParts, EvictsWhileDecoding {};
    struct StoresAndMergesValues : Policy, StoresParts, MergesValues {};
    struct AppendsAndLooksAhead : Policy, AppendsTokens, LooksAhead {};
    struct MergesAndStores : ReadsThroughOwnCache, StoresWhileDecoding {};
    struct FiltersInOrder : Policy, FiltersPrompt, DecidesInOrder {};
    struct EvictsInOrder : Policy, Gathers, DecidesInOrder, AppendsTokens, MergesValues, EvictsWhileDecoding {};
    STATIC_REQUIRE_FALSE(interfaces_agree<StoresAndEvicts>());
    STATIC_REQUIRE_FALSE(interfaces_agree<StoresAndMergesValues>());
    STATIC_REQUIRE_FALSE(interfaces_agree<AppendsAndLooksAhead>());
    STATIC_REQUIRE_FALSE(interfaces_agree<MergesAndStores>());
    STATIC_REQUIRE_FALSE(interfaces_agree<FiltersInOrder>());
    struct LooksAheadInOrder : Policy, Gathers, DecidesInOrder, LooksAhead {};
    struct FiltersAndGathers : Policy, FiltersPrompt, Gathers {};
    STATIC_REQUIRE_FALSE(interfaces_agree<LooksAheadInOrder>());
    STATIC_REQUIRE_FALSE(interfaces_agree<FiltersAndGathers>());
    STATIC_REQUIRE(interfaces_agree<EvictsInOrder>());
}
