#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "policies/registry/registry.h"
#include "policies/registry/validation.h"
#include "tests/policies/random_cache.h"
#include "tests/policies/stored_widths.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;
using Catch::Matchers::Contains;

namespace {

constexpr ModelShape model_shape{7, 6, 3, 16};
constexpr int64_t prompt_tokens = 60;

CreatedPolicy begun(const std::string& policy, const Cache& cache, double share) {
    RunContext context = cache.context(std::llround(share * static_cast<double>(prompt_tokens)));
    context.budget_share = share;
    auto made = parse_policy(policy).create();
    made->begin(context);
    return made;
}

std::vector<Selection> select(const std::string& policy, Cache& cache, double share) {
    auto selections = select_all(begun(policy, cache, share), cache);
    for (size_t layer = 0; layer < selections.size(); ++layer)
        require_valid_storage("minicache", static_cast<int>(layer), model_shape, selections[layer]);
    return selections;
}

using Vector = std::vector<double>;

Vector vector_of(const std::vector<float>& all, int head, uint32_t token) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>((head * prompt_tokens + token) * 16);
    return {from, from + 16};
}

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double angle(const Vector& a, const Vector& b) {
    return std::acos(std::clamp(dot(a, b) / std::sqrt(dot(a, a) * dot(b, b)), -1.0, 1.0));
}

/// The stored vector of an entry; empty if it is the prompt's own.
Vector stored_vector(const StoredVectors& vectors, size_t entry) {
    const StoredPart& part = vectors.parts.at(0);
    if (!part.block) return {};
    Vector found;
    for (size_t c = 0; c < 16; ++c)
        found.push_back(double{part.block->numbers[entry * 16 + c]} * double{part.scales[entry]});
    return found;
}

/// Checks against the definition: a token's vectors in both layers lie at `t` on the arc, with their own lengths.
void check_merged(const Vector& shallower, const Vector& deeper, const Vector& found_shallower,
                  const Vector& found_deeper, double t) {
    const double whole = angle(shallower, deeper);
    CHECK(angle(shallower, found_shallower) == Approx(t * whole).margin(1e-4));
    CHECK(angle(deeper, found_deeper) == Approx((1.0 - t) * whole).margin(1e-4));
    CHECK(std::sqrt(dot(found_shallower, found_shallower)) ==
          Approx(std::sqrt(dot(shallower, shallower))).epsilon(1e-5));
    CHECK(std::sqrt(dot(found_deeper, found_deeper)) == Approx(std::sqrt(dot(deeper, deeper))).epsilon(1e-5));
    CHECK(angle(found_shallower, found_deeper) == Approx(0).margin(1e-4));
}

/// (N) angles of a head's keys or values between two layers.
Vector angles_of(const std::vector<float>& shallower, const std::vector<float>& deeper, int head) {
    Vector angles;
    for (uint32_t token = 0; token < prompt_tokens; ++token)
        angles.push_back(angle(vector_of(shallower, head, token), vector_of(deeper, head, token)));
    return angles;
}

/// Checks that the vectors with the largest angles stay exact.
void check_retained(const Vector& angles, const std::vector<bool>& is_exact, int expected) {
    double least = 10, most = 0;
    for (size_t i = 0; i < angles.size(); ++i) {
        if (is_exact[i])
            least = std::min(least, angles[i]);
        else
            most = std::max(most, angles[i]);
    }
    CHECK(std::count(is_exact.begin(), is_exact.end(), true) == expected);
    CHECK(least > most);
}

}  // namespace

TEST_CASE("MiniCache merges pairs from the last layer down as defined", "[minicache]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 4);
    for (const double t : {0.6, 0.0, 0.25}) {
        const auto selections = select(fmt::format("minicache:pairs=2,retained=0.2,t={}", t), cache, 1.0);
        for (int layer = 0; layer < 3; ++layer) CHECK_FALSE(selections[static_cast<size_t>(layer)].stored);
        for (const size_t first : {size_t{3}, size_t{5}}) {
            REQUIRE(selections[first].stored);
            REQUIRE(selections[first + 1].stored);
            CHECK(selections[first + 1].stored->blocks.empty());
            const Layer &shallower = cache.layers[first], &deeper = cache.layers[first + 1];
            for (int head = 0; head < model_shape.n_kv_heads; ++head) {
                const StoredRow& row = selections[first].stored->rows[static_cast<size_t>(head)];
                const StoredRow& below = selections[first + 1].stored->rows[static_cast<size_t>(head)];
                CHECK(row.plain == below.plain);
                REQUIRE(row.stored.size() == below.stored.size());
                std::vector<bool> keys(prompt_tokens, true), values(prompt_tokens, true);
                for (size_t i = 0; i < row.stored.size(); ++i) {
                    const StoredEntries &a = row.stored[i], &b = below.stored[i];
                    CHECK(a.positions == b.positions);
                    CHECK_FALSE(a.keys.before_rope);
                    for (size_t entry = 0; entry < a.positions.size(); ++entry) {
                        const uint32_t token = a.positions[entry];
                        if (const Vector key = stored_vector(a.keys, entry); !key.empty()) {
                            keys[token] = false;
                            check_merged(vector_of(shallower.keys, head, token), vector_of(deeper.keys, head, token),
                                         key, stored_vector(b.keys, entry), t);
                        }
                        if (const Vector value = stored_vector(a.values, entry); !value.empty()) {
                            values[token] = false;
                            check_merged(vector_of(shallower.values, head, token),
                                         vector_of(deeper.values, head, token), value, stored_vector(b.values, entry),
                                         t);
                        }
                    }
                }
                check_retained(angles_of(shallower.keys, deeper.keys, head), keys, 12);
                check_retained(angles_of(shallower.values, deeper.values, head), values, 12);
            }
        }
    }
}

TEST_CASE("MiniCache merges as many pairs as its budget needs, and counts their bytes", "[minicache]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 5);
    const auto found = [&](const std::string& policy, double share) {
        size_t bytes = 0, merged = 0;
        for (const Selection& selection : select(policy, cache, share)) {
            const auto rows = row_bytes_of(selection, 16, 2);
            bytes += std::accumulate(rows.begin(), rows.end(), size_t{0});
            merged += selection.stored ? 1 : 0;
        }
        return std::pair(merged / 2, static_cast<double>(bytes) / (7.0 * 2 * 3 * prompt_tokens * 16 * 2));
    };
    // 3 of 60 tokens are exact: a pair saves 57 * 14 of 60 * 16 numbers in one of seven layers, 0.11875.
    CHECK(found("minicache", 1.0) == std::pair(size_t{0}, 1.0));
    for (const auto& [share, pairs] : {std::pair{0.99, 1}, {0.89, 1}, {0.88, 2}, {0.7, 3}, {0.644, 3}}) {
        CAPTURE(share);
        const auto [merged, bytes] = found("minicache", share);
        CHECK(merged == static_cast<size_t>(pairs));
        CHECK(bytes == Approx(1 - pairs * 0.11875).epsilon(1e-9));
        CHECK(bytes <= share);
    }
    CHECK(found("minicache:pairs=2", 1.0).first == 2);
    CHECK(found("minicache:retained=0", 0.7).second == Approx(1 - 3 * 0.125));
    CHECK(found("minicache:retained=1", 1.0).first == 0);
    CHECK_THROWS_WITH(begun("minicache", cache, 0.5), Contains("at least 64.4 %") && Contains("3 of 60 tokens"));
    CHECK_THROWS_AS(begun("minicache", cache, 0.5), BudgetError);
    CHECK_NOTHROW(begun("minicache", cache, 0.644));
    CHECK_THROWS_WITH(begun("minicache:pairs=2", cache, 0.7), Contains("merges 2 pairs") && Contains("76.3 %"));
    CHECK_THROWS_WITH(begun("minicache:pairs=4", cache, 1.0), Contains("at most 3 pairs"));
    CHECK_THROWS_AS(begun("minicache:retained=1", cache, 0.9), BudgetError);
    const auto selections = select("minicache:pairs=1", cache, 1.0);
    const auto above = summarize_storage("minicache", 5, model_shape, prompt_tokens, selections[5], 2);
    const auto below = summarize_storage("minicache", 6, model_shape, prompt_tokens, selections[6], 2);
    check_widths(selections[5], above, 16);
    check_widths(selections[6], below, 16);
    CHECK(above.bytes.total() > 10 * below.bytes.total() / 2);
    CHECK(above.bytes.mapped + above.bytes.channels == 0);
    CHECK_FALSE(above.merges);
}

TEST_CASE("MiniCache accepts zero vectors and refuses numbers that are not finite", "[minicache]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 6);
    const auto set = [&](size_t layer, int head, int token, float value) {
        auto& keys = cache.layers[layer].keys;
        std::fill_n(keys.begin() + (head * prompt_tokens + token) * 16, 16, value);
        cache.observe(8);
    };
    set(6, 1, 20, 0.0f);
    const auto merged = select("minicache:pairs=1", cache, 1.0);
    const auto& entries = merged[5].stored->rows[1].stored[0];
    const auto at = std::find(entries.positions.begin(), entries.positions.end(), 20u) - entries.positions.begin();
    const Vector own = vector_of(cache.layers[5].keys, 1, 20);
    const Vector found = stored_vector(entries.keys, static_cast<size_t>(at));
    for (size_t c = 0; c < 16; ++c) CHECK(found[c] == Approx(own[c]).margin(1e-5));
    for (const double number : stored_vector(merged[6].stored->rows[1].stored[0].keys, static_cast<size_t>(at)))
        CHECK(number == 0);
    // Opposite vectors have no shortest arc: the nearer direction is used, and no vector vanishes.
    auto& keys = cache.layers[6].keys;
    std::transform(cache.layers[5].keys.begin(), cache.layers[5].keys.end(), keys.begin(), [](float x) { return -x; });
    cache.observe(8);
    for (const auto& [t, sign] : {std::pair{"0.6", -1.0}, {"0.4", 1.0}}) {
        const auto opposite = select(std::string("minicache:pairs=1,retained=0,t=") + t, cache, 1.0);
        for (const uint32_t token : {0u, 20u, 59u}) {
            const Vector above = vector_of(cache.layers[5].keys, 1, token);
            const Vector vector = stored_vector(opposite[5].stored->rows[1].stored[0].keys, token);
            for (size_t c = 0; c < 16; ++c) CHECK(vector[c] == Approx(sign * above[c]).margin(1e-5));
        }
    }
    set(6, 1, 20, NAN);
    CHECK_THROWS_WITH(select("minicache:pairs=1", cache, 1.0),
                      Contains("layers 5 and 6, head 1") && Contains("key of token 20"));
}

TEST_CASE("a layer is decided after the layer that decided_at returns", "[minicache]") {
    struct Waits : Policy, DecidesInOrder {
        std::vector<int> at;
        Needs needs() const override { return {}; }
        void begin(const RunContext&) override {}
        Selection select(LayerObservations&) override { return {}; }
        int decided_at(int layer) const override { return at[static_cast<size_t>(layer)]; }
    };
    auto waits = std::make_unique<Waits>();
    Waits& settings = *waits;
    const CreatedPolicy policy(std::move(waits));
    const auto order = [&](std::vector<int> at) {
        settings.at = std::move(at);
        DecidableLayers decisions;
        std::vector<int> ends;
        for (int layer = 0; layer < 4; ++layer) ends.push_back(decisions.after(policy, layer, 4).second);
        return ends;
    };
    CHECK(order({0, 1, 2, 3}) == std::vector<int>{1, 2, 3, 4});
    CHECK(order({1, 1, 3, 3}) == std::vector<int>{0, 2, 2, 4});
    CHECK(order({3, 3, 3, 3}) == std::vector<int>{0, 0, 0, 4});
    CHECK(order({2, 3, 3, 3}) == std::vector<int>{0, 0, 1, 4});
    CHECK_THROWS_AS(order({0, 0, 2, 3}), std::logic_error);
    CHECK_THROWS_AS(order({2, 1, 2, 3}), std::logic_error);
    CHECK_THROWS_WITH(order({0, 1, 2, 4}), Contains("layer 3 cannot be decided at layer 4"));
    DecidableLayers decisions;
    CHECK_THROWS_AS(decisions.after(policy, 1, 4), std::logic_error);
}
