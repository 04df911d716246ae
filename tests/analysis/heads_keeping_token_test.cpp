#include "analysis/measures/heads_keeping_token.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "analysis/drawing/figure_definition.h"
#include "tests/analysis/kept_example.h"
#include "tests/analysis/sample_figures.h"

using namespace kvscope::analysis;
namespace trace = kvscope::trace;

TEST_CASE("heads and layers that keep each token are counted") {
    const auto sets = test::by_hand();
    CHECK(count_heads_keeping_per_layer(sets.view()) == std::vector<double>{2, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 1});
    CHECK(count_layers_keeping_token(sets.view()) == std::vector<double>{1, 1, 1, 0, 0, 2});
    CHECK(heads_keeping(sets.view()) == std::vector<double>{2, 1, 1, 0, 0, 3});
    CHECK(smallest_positive_count(count_heads_keeping_per_layer(sets.view())) == 1);
}

TEST_CASE("retention equals the result of a plain loop") {
    const auto sets = test::random_sets(5, 3, 41, GENERATE(1U, 2U, 3U));
    const auto counts = count_heads_keeping_per_layer(sets.view());
    const auto holding = count_holding_heads(sets.view());
    const auto layers = count_layers_keeping_token(sets.view());
    for (uint32_t token = 0; token < 41; ++token) {
        int n_layers = 0;
        for (size_t layer = 0; layer < 5; ++layer) {
            int n_heads = 0;
            for (size_t row = 0; row < 3; ++row) n_heads += sets.keeps(layer, row, token) ? 1 : 0;
            REQUIRE(counts[layer * 41 + token] == n_heads);
            REQUIRE(holding[layer * 41 + token] == n_heads);
            n_layers += n_heads > 0 ? 1 : 0;
        }
        REQUIRE(layers[token] == n_layers);
    }
}

TEST_CASE("a token in a merged entry of n counts as 1/n") {
    // Layer 0: tokens 0 to 3 in one entry, 4 dropped, 5 alone; 0 and 1 in one entry, 5 alone. Layer 1: nothing; 2 and 5
    // alone.
    test::OwnedSets sets{2, 2, 6, {{0, 1, 2, 3, 5}, {0, 1, 5}, {}, {2, 5}}};
    sets.entry_tokens = {4, 4, 4, 4, 1, 2, 2, 1, 1, 1};
    CHECK(count_heads_keeping_per_layer(sets.view()) ==
          std::vector<double>{0.75, 0.75, 0.25, 0.25, 0, 2, 0, 0, 1, 0, 0, 1});
    CHECK(count_layers_keeping_token(sets.view()) == std::vector<double>{0.5, 0.5, 1.25, 0.25, 0, 2});
    CHECK(heads_keeping(sets.view()) == std::vector<double>{0.75, 0.75, 1.25, 0.25, 0, 3});
    CHECK(count_holding_heads(sets.view()) == std::vector<uint16_t>{2, 2, 1, 1, 0, 2, 0, 0, 1, 0, 0, 1});
    CHECK(smallest_positive_count(count_heads_keeping_per_layer(sets.view())) == 0.25);
}

TEST_CASE("the parts of all tokens sum to the number of entries in each head and layer, whatever the cardinality") {
    const test::SampleTrace sample;
    const trace::Reader& reader = sample.reader();
    const auto n = static_cast<size_t>(reader.prompt(0).visible_tokens());
    bool any_merges = false;
    for (int run = 0; run < reader.n_runs(0); ++run) {
        if (reader.run(0, run).status != "complete") continue;
        CAPTURE(reader.run(0, run).label);
        auto kept = *reader.kept(0, run);
        any_merges = any_merges || kept.merges();
        for (float& cardinality : kept.cardinality) cardinality = std::min(cardinality, 2.5F);  // as with a cap
        const KeptSets sets = kept_sets(kept, n);
        const auto counts = count_heads_keeping_per_layer(sets);
        double all = 0;
        for (size_t layer = 0; layer < kept.n_layers; ++layer) {
            size_t entries = 0;
            for (size_t row = 0; row < kept.n_rows; ++row) {
                double of_row = 0;
                sets.each(layer, row, [&](uint32_t token, double share) {
                    of_row += share;
                    REQUIRE(share == 1.0 / kept.fate(layer, row, token).n_tokens);
                });
                CHECK(of_row == Approx(static_cast<double>(kept.count(layer, row))).epsilon(1e-12));
                entries += kept.count(layer, row);
            }
            const double* of_layer = counts.data() + layer * n;
            CHECK(std::accumulate(of_layer, of_layer + n, 0.0) == Approx(static_cast<double>(entries)).epsilon(1e-12));
            all += static_cast<double>(entries);
        }
        const auto heads = heads_keeping(sets);
        CHECK(std::accumulate(heads.begin(), heads.end(), 0.0) == Approx(all).epsilon(1e-12));
        const auto layers = count_layers_keeping_token(sets);
        for (const double count : layers) CHECK(count <= static_cast<double>(kept.n_layers));
    }
    CHECK(any_merges);
}
