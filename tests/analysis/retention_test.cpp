#include "analysis/measures/retention.h"

#include <catch2/catch.hpp>

#include "tests/analysis/kept_example.h"

using namespace kvscope::analysis;

TEST_CASE("retention counts heads of a layer, layer counts layers") {
    const auto sets = test::by_hand();
    CHECK(retention_counts(sets.view()) == std::vector<uint16_t>{2, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 1});
    CHECK(layer_counts(sets.view()) == std::vector<uint16_t>{1, 1, 1, 0, 0, 2});
}

TEST_CASE("retention counts equal those of a plain loop") {
    const auto sets = test::random_sets(5, 3, 41, GENERATE(1U, 2U, 3U));
    const auto counts = retention_counts(sets.view());
    const auto layers = layer_counts(sets.view());
    for (uint32_t token = 0; token < 41; ++token) {
        int n_layers = 0;
        for (size_t layer = 0; layer < 5; ++layer) {
            int n_heads = 0;
            for (size_t row = 0; row < 3; ++row) n_heads += sets.keeps(layer, row, token) ? 1 : 0;
            REQUIRE(counts[layer * 41 + token] == n_heads);
            n_layers += n_heads > 0 ? 1 : 0;
        }
        REQUIRE(layers[token] == n_layers);
    }
}
