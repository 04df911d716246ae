// Observations of a prefill's layers, and when a device starts the next layer.
#include "engine/prefill/prefill.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/engine/experiment_on_disk.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

/// Counts the layers that were started.
class CountingProgress final : public engine::Progress {
 public:
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t done) override { n_begun = done; }
    void message(std::string_view) override {}
    int64_t n_begun = 0;
};

/// Returns all observations of a layer, in the processor's memory.
std::vector<float> shown_of(const policies::LayerObservations& layer) {
    std::vector<float> all(layer.window_queries.begin(), layer.window_queries.end());
    all.insert(all.end(), layer.attention_sums.begin(), layer.attention_sums.end());
    all.insert(all.end(), layer.hidden_states.begin(), layer.hidden_states.end());
    std::vector<float> entry(static_cast<size_t>(layer.shape.head_dim));
    for (const auto& entries : {layer.keys, layer.values, layer.keys_before_rope})
        for (int head = 0; head < layer.shape.n_kv_heads; ++head)
            for (int64_t i = 0; i < layer.n_tokens; ++i) {
                policies::read_entry(entries, head, i, layer.shape.head_dim, entry.data());
                all.insert(all.end(), entry.begin(), entry.end());
            }
    return all;
}

engine::PrefillRequest request_of(std::span<const int32_t> ids) {
    engine::PrefillRequest request;
    request.ids = ids;
    request.needs.window_queries = 7;
    request.needs.attention_sums = request.needs.entries = request.needs.keys_before_rope = true;
    return request;
}

}  // namespace

TEST_CASE("a device computes the next layer while one is observed, and the observations stay the same") {
    const auto& model = tiny_model().transformer();
    const auto ids = some_ids(tiny_model(), 61);
    engine::PrefillRequest request = request_of(ids);
    const bool sees_first = GENERATE(false, true);
    request.needs.hidden_states = sees_first;
    CAPTURE(sees_first);

    CountingProgress progress;
    std::vector<std::vector<float>> one_by_one, before, meanwhile;
    const auto look = [](auto& shown) {
        return [&shown](engine::PrefillLayer& layer) { shown.push_back(shown_of(layer.prompt)); };
    };
    const auto expected = engine::prefill(model, request, look(one_by_one), progress);
    std::vector<int64_t> begun;
    const auto result = engine::prefill(model, request, look(before), progress, [&](engine::PrefillLayer& layer) {
        begun.push_back(progress.n_begun);
        look(meanwhile)(layer);
    });
    CHECK(before == one_by_one);
    CHECK(meanwhile == one_by_one);
    CHECK(result.last_logits == expected.last_logits);

    const auto n_layers = static_cast<int64_t>(model.shape().n_layers);
    REQUIRE(n_layers > 1);
    REQUIRE(static_cast<int64_t>(begun.size()) == n_layers);
    const int64_t ahead = model.device().is_processor() || sees_first ? 0 : 1;
    for (int64_t layer = 0; layer < n_layers; ++layer)
        CHECK(begun[static_cast<size_t>(layer)] == std::min(layer + 1 + ahead, n_layers));
}
