#include <catch2/catch.hpp>
#include <fstream>

#include "common/json.h"
#include "policies/registry/registry.h"
#include "tests/policies/random_cache.h"

using namespace kvscope::policies;

namespace {

std::vector<float> quarters(const nlohmann::json& integers) {
    std::vector<float> values;
    for (const auto& integer : integers) values.push_back(integer.get<float>() / 4.0f);
    return values;
}

}  // namespace

TEST_CASE("kept sets of a random cache equal those of scripts/golden/policy_cases.py", "[golden]") {
    nlohmann::json data;
    std::ifstream(KVSCOPE_TEST_DATA "/policies/cases.json") >> data;
    const ModelShape shape{data["n_layers"], data["n_heads"], data["n_kv_heads"], data["head_dim"]};
    test::Cache cache;
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        test::Layer one;
        one.shape = shape;
        one.n_tokens = data["n_tokens"];
        one.queries = quarters(data["queries"][layer]);
        one.keys = quarters(data["keys"][layer]);
        one.values = one.keys;
        cache.layers.push_back(std::move(one));
    }
    cache.observe(32);
    for (const auto& example : data["cases"]) {
        PolicySpec spec = parse_policy(example["policy"].get<std::string>());
        if (spec.values.has("importance")) {
            spec.values.set("importance", KVSCOPE_TEST_DATA "/" + spec.values.text("importance"));
        }
        CAPTURE(example["policy"], example["budget"]);
        const auto selections = test::select_all(spec.create(), cache, example["budget"]);
        for (int layer = 0; layer < shape.n_layers; ++layer) {
            CAPTURE(layer);
            CHECK(selections[layer].rows == example["kept"][layer].get<std::vector<std::vector<uint32_t>>>());
            if (!example.contains("head_jsd")) continue;
            const auto expected = example["head_jsd"][layer].get<std::vector<double>>();
            REQUIRE(selections[layer].head_jsd.size() == expected.size());
            for (size_t i = 0; i < expected.size(); ++i) {
                CHECK(selections[layer].head_jsd[i] == Approx(expected[i]).epsilon(1e-4).margin(1e-11));
            }
        }
    }
    CHECK(data["cases"].size() > 140);
}
