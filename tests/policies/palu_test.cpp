#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "policies/methods/gram_eigenvectors.h"
#include "policies/registry/registry.h"
#include "policies/registry/validation.h"
#include "tests/policies/random_cache.h"
#include "tests/policies/stored_widths.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;
using Catch::Matchers::Contains;

namespace {

constexpr ModelShape model_shape{3, 10, 5, 16};
constexpr int64_t prompt_tokens = 70;
constexpr int hidden_size = 40;

/// Weights that differ by layer, and between keys and values.
Projection random_projection(int layer, Projected which, bool has_bias) {
    std::mt19937 random(static_cast<unsigned>(10 * layer + (which == Projected::keys ? 1 : 2)));
    std::normal_distribution<float> normal;
    Projection projection{
        .n_out = model_shape.n_kv_heads * model_shape.head_dim, .n_in = hidden_size, .weight = {}, .bias = {}};
    projection.weight.resize(static_cast<size_t>(projection.n_out * hidden_size));
    for (float& value : projection.weight) value = normal(random);
    if (has_bias)
        for (int i = 0; i < projection.n_out; ++i) projection.bias.push_back(3.0f * normal(random));
    return projection;
}

RunContext context_of(const Cache& cache, double share, bool has_bias = false) {
    RunContext context = cache.context(std::llround(share * static_cast<double>(prompt_tokens)));
    context.budget_share = share;
    context.projection = [has_bias](int layer, Projected which) { return random_projection(layer, which, has_bias); };
    return context;
}

std::vector<Selection> select(const std::string& policy, Cache& cache, const RunContext& context) {
    const auto made = parse_policy(policy).create();
    made->begin(context);
    std::vector<Selection> selections;
    for (const auto& layer : cache.observations) {
        selections.push_back(made->select(*layer));
        require_valid_storage("palu", layer->layer, model_shape, selections.back());
    }
    return selections;
}

/// (d) a head's keys or values, rebuilt from the stored vectors of a token.
std::vector<double> rebuilt(const StoredVectors& vectors, size_t token) {
    const StoredPart& part = vectors.parts.at(0);
    std::vector<double> sum(16, 0.0);
    for (size_t c = 0; c < 16; ++c) {
        if (!vectors.offset.empty()) sum[c] = double{vectors.offset[c]};
        for (int i = 0; i < part.width; ++i)
            sum[c] += double{part.block->numbers[token * static_cast<size_t>(part.width) + static_cast<size_t>(i)]} *
                      double{part.map->numbers[static_cast<size_t>(i) * 16 + c]};
    }
    return sum;
}

double squared_error(const std::vector<double>& found, const std::vector<float>& all, int head, size_t token) {
    double sum = 0;
    for (size_t c = 0; c < 16; ++c)
        sum += std::pow(found[c] - double{all[(static_cast<size_t>(head) * prompt_tokens + token) * 16 + c]}, 2);
    return sum;
}

/// Error over all tokens of the heads [first, end).
double squared_error(const Selection& selection, const Layer& layer, Projected which, int first, int end) {
    double sum = 0;
    for (int head = first; head < end; ++head)
        for (size_t token = 0; token < prompt_tokens; ++token) {
            const StoredEntries& entries = selection.stored->rows[static_cast<size_t>(head)].stored[0];
            const bool is_keys = which == Projected::keys;
            sum += squared_error(rebuilt(is_keys ? entries.keys : entries.values, token),
                                 is_keys ? layer.keys : layer.values, head, token);
        }
    return sum;
}

/// Squared singular values of the heads' rows, as eigenvalues of the rows times their transpose.
std::vector<double> eigenvalues(const std::vector<std::vector<double>>& columns) {
    const size_t width = columns[0].size();
    std::vector<double> products(width * width, 0.0);
    for (const auto& column : columns)
        for (size_t i = 0; i < width; ++i)
            for (size_t j = 0; j < width; ++j) products[i * width + j] += column[i] * column[j];
    return leading_eigenvectors(products, static_cast<int>(width), static_cast<int>(width)).eigenvalues;
}

}  // namespace

TEST_CASE("leading directions are orthonormal eigenvectors in descending order", "[palu]") {
    // [[2, 1], [1, 2]] has eigenvalue 3 along (1, 1) and 1 along (1, -1).
    const std::vector<double> matrix{2, -100, 1, 2};  // numbers above the diagonal are ignored
    const Directions both = leading_eigenvectors(matrix, 2, 2);
    CHECK(both.eigenvalues[0] == Approx(3));
    CHECK(both.eigenvalues[1] == Approx(1));
    CHECK(both.vectors[0] == Approx(both.vectors[1]));
    CHECK(std::abs(both.vectors[0]) == Approx(std::sqrt(0.5)));
    CHECK(both.vectors[2] == Approx(-both.vectors[3]));
    CHECK(leading_eigenvectors(matrix, 2, 1).vectors.size() == 2);
    CHECK_THROWS_AS(leading_eigenvectors(std::vector<double>{NAN, 0, 1, 2}, 2, 1), ScoreError);
    CHECK_THROWS_AS(leading_eigenvectors(matrix, 2, 3), std::logic_error);
    CHECK_THROWS_AS(leading_eigenvectors(matrix, 3, 1), std::logic_error);
    std::vector<double> sums(4, 0.0);
    accumulate_gram_matrix(std::vector<float>{1, 2, 3, 5}, 2, sums);
    CHECK(sums == std::vector<double>{10, 0, 17, 29});
    CHECK_THROWS_AS(accumulate_gram_matrix(std::vector<float>{1, 2, 3}, 2, sums), std::logic_error);
}

TEST_CASE("Palu with whitening loses exactly the parts along the prompt's smallest directions", "[palu]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 3);
    for (const bool has_bias : {false, true})
        for (const int heads : {4, 1, 2}) {
            CAPTURE(has_bias, heads);
            const auto selections = select("palu:whitening=prompt,group_heads=" + std::to_string(heads), cache,
                                           context_of(cache, 0.4, has_bias));
            for (int layer = 0; layer < model_shape.n_layers; ++layer)
                for (const auto which : {Projected::keys, Projected::values})
                    for (int first = 0; first < 5; first += heads) {
                        const int end = std::min(first + heads, 5), width = (end - first) * 16;
                        const auto rank = static_cast<size_t>(0.4 * width + 1e-9);
                        const Layer& of = cache.layers[static_cast<size_t>(layer)];
                        const auto& all = which == Projected::keys ? of.keys : of.values;
                        const auto bias = random_projection(layer, which, has_bias).bias;
                        std::vector<std::vector<double>> columns(prompt_tokens);
                        for (size_t token = 0; token < prompt_tokens; ++token)
                            for (int i = first * 16; i < end * 16; ++i)
                                columns[token].push_back(
                                    double{all[(static_cast<size_t>(i / 16) * prompt_tokens + token) * 16 +
                                               static_cast<size_t>(i % 16)]} -
                                    (has_bias ? double{bias[static_cast<size_t>(i)]} : 0.0));
                        const auto values = eigenvalues(columns);
                        const double left_out =
                            std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(rank), values.end(), 0.0);
                        const Selection& selection = selections[static_cast<size_t>(layer)];
                        CHECK(squared_error(selection, of, which, first, end) == Approx(left_out).epsilon(1e-4));
                    }
        }
}

TEST_CASE("Palu takes its directions from the calibration text, and requests it once", "[palu]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 3);
    const Cache text = random_cache(model_shape, prompt_tokens, 11);
    const auto memo = std::make_shared<ModelMemo>();
    int n_asked = 0;
    const auto with_text = [&](const std::string& policy, const Cache& of, double share) {
        RunContext context = context_of(cache, share);
        context.memo = memo;
        context.calibration = [&](int layer, Projected which) {
            ++n_asked;
            return of.moments(layer, which);
        };
        return select(policy, cache, context);
    };
    const auto maps_of = [](const Selection& selection, int head) {
        return selection.stored->rows[static_cast<size_t>(head)].stored[0].keys.parts[0].map->numbers;
    };
    const auto calibrated = with_text("palu", text, 0.4);
    CHECK(n_asked == 2 * model_shape.n_layers);
    CHECK(maps_of(with_text("palu", text, 0.3)[1], 2).size() < maps_of(calibrated[1], 2).size());
    CHECK(n_asked == 2 * model_shape.n_layers);
    CHECK(parse_policy("palu").create()->needs().calibration);
    CHECK_FALSE(parse_policy("palu:whitening=prompt").create()->needs().calibration);
    // They equal the directions of a prompt with the same text.
    Cache as_prompt = random_cache(model_shape, prompt_tokens, 11);
    const auto expected = select("palu:whitening=prompt", as_prompt, context_of(as_prompt, 0.4));
    for (const int head : {0, 2, 4}) {
        const auto found = maps_of(calibrated[1], head), wanted = maps_of(expected[1], head);
        REQUIRE(found.size() == wanted.size());
        for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(wanted[i]).margin(1e-5));
    }
    CHECK(maps_of(calibrated[1], 0) != maps_of(select("palu:whitening=prompt", cache, context_of(cache, 0.4))[1], 0));
}

TEST_CASE("whitening=on in earlier traces and recipes means whitening=prompt", "[palu]") {
    CHECK(parse_policy("palu:whitening=on").label() == "palu:whitening=prompt");
    CHECK(parse_policy("palu:whitening=calibration").label() == "palu");
    const Definition& palu = definition_named("palu");
    const auto read = [&](const char* json) {
        return ParameterValues::from_json(palu.parameters, json).text("whitening");
    };
    CHECK(read(R"({"whitening": true})") == "prompt");
    CHECK(read(R"({"whitening": false})") == "off");
    CHECK(read(R"({"whitening": "calibration"})") == "calibration");
    CHECK_THROWS_WITH(parse_policy("palu:whitening=maybe"), Contains("calibration, prompt, off"));
    CHECK_THROWS_AS(ParameterValues::from_json(palu.parameters, R"({"whitening": 1})"), ParameterError);
}

TEST_CASE("Palu projects onto the weights' leading directions", "[palu]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 4);
    const auto selections = select("palu:whitening=off", cache, context_of(cache, 0.5, true));
    for (int layer = 0; layer < model_shape.n_layers; ++layer)
        for (const auto which : {Projected::keys, Projected::values}) {
            const auto made_with = random_projection(layer, which, true);
            const Selection& selection = selections[static_cast<size_t>(layer)];
            REQUIRE(selection.stored);
            CHECK(selection.stored->blocks.size() == 4);
            // The last group is one head of 16 with 8 directions. With the projector P = B^T B, the part of W outside
            // the directions has the squared norm of the smallest eigenvalues, which is the minimum for 8 directions.
            const StoredEntries& entries = selection.stored->rows[4].stored[0];
            const StoredVectors& vectors = which == Projected::keys ? entries.keys : entries.values;
            REQUIRE(vectors.parts[0].width == 8);
            CHECK(vectors.before_rope == (which == Projected::keys));
            const Matrix& map = *vectors.parts[0].map;
            std::vector<std::vector<double>> columns(hidden_size);
            double outside = 0;
            for (size_t in = 0; in < hidden_size; ++in) {
                auto& column = columns[in];
                for (size_t out = 64; out < 80; ++out)
                    column.push_back(double{made_with.weight[out * hidden_size + in]});
                auto rest = column;
                for (size_t i = 0; i < 8; ++i) {
                    double along = 0;
                    for (size_t c = 0; c < 16; ++c) along += column[c] * double{map.numbers[i * 16 + c]};
                    for (size_t c = 0; c < 16; ++c) rest[c] -= along * double{map.numbers[i * 16 + c]};
                }
                for (const double value : rest) outside += value * value;
            }
            const auto values = eigenvalues(columns);
            CHECK(outside == Approx(std::accumulate(values.begin() + 8, values.end(), 0.0)).epsilon(1e-4));
            for (size_t c = 0; c < 16; ++c) CHECK(vectors.offset[c] == made_with.bias[64 + c]);
            // The stored numbers are a token's components along the directions, without the bias.
            const Layer& of = cache.layers[static_cast<size_t>(layer)];
            const auto& all = which == Projected::keys ? of.keys : of.values;
            for (size_t i = 0; i < 8; ++i) {
                double along = 0;
                for (size_t c = 0; c < 16; ++c)
                    along += (double{all[(4 * prompt_tokens + 7) * 16 + c]} - double{made_with.bias[64 + c]}) *
                             double{map.numbers[i * 16 + c]};
                CHECK(vectors.parts[0].block->numbers[7 * 8 + i] == Approx(along).margin(1e-4));
            }
        }
}

TEST_CASE("Palu's bytes are its share of the full cache's, set by the budget or its parameter, plus its directions",
          "[palu]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 5);
    const auto bytes = [&](const std::string& policy, double share) {
        const auto selection = select(policy, cache, context_of(cache, share))[0];
        const auto rows = row_bytes_of(selection, 16, 2);
        const size_t total = std::accumulate(rows.begin(), rows.end(), size_t{0});
        const auto summary = summarize_storage("palu", 0, model_shape, prompt_tokens, selection, 2);
        CHECK(summary.bytes.total() == total);
        if (selection.stored) check_widths(selection, summary, 16);
        return total;
    };
    // Keys and values of a token take two bytes per number. The prompt's directions take r D numbers in f32 per group
    // of D numbers.
    const auto whole = [](size_t numbers) { return 2 * 2 * prompt_tokens * numbers; };
    const auto directions = [](size_t numbers) { return 2 * sizeof(float) * numbers; };
    CHECK(bytes("palu:whitening=prompt", 0.5) == whole(32 + 8) + directions(32 * 64 + 8 * 16));
    CHECK(bytes("palu:whitening=on", 0.3) == whole(19 + 4) + directions(19 * 64 + 4 * 16));
    CHECK(bytes("palu:whitening=on,group_heads=1", 0.3) == whole(5 * 4) + directions(5 * 4 * 16));
    CHECK(bytes("palu:whitening=on,group_heads=99", 0.3) == whole(24) + directions(24 * 80));
    CHECK(bytes("palu:whitening=on,rank_share=0.25", 0.9) == whole(16 + 4) + directions(16 * 64 + 4 * 16));
    CHECK(bytes("palu:whitening=on,rank_share=0.001", 0.9) == whole(2) + directions(64 + 16));
    // Directions of a calibration text and of the weights belong to the model.
    CHECK(bytes("palu", 0.5) == whole(32 + 8));
    CHECK(bytes("palu:group_heads=1", 0.3) == whole(5 * 4));
    CHECK(bytes("palu:whitening=off", 0.5) == whole(32 + 8));
    CHECK(bytes("palu", 1.0) == whole(80));
    CHECK_FALSE(select("palu", cache, context_of(cache, 1.0))[0].stored);
    CHECK(parse_policy("palu").own_share() == std::nullopt);
    CHECK(parse_policy("palu:rank_share=0.4").own_share() == 0.4);
    CHECK_THROWS_AS(parse_policy("palu:rank_share=0"), ParameterError);
    const auto policy = parse_policy("palu").create();
    CHECK_THROWS_AS(policy->begin(context_of(cache, 0.06)), BudgetError);
    CHECK_THROWS_WITH(policy->begin(context_of(cache, 0.06)), Contains("at least 6.3 %"));
    CHECK_NOTHROW(policy->begin(context_of(cache, 0.063)));
    const auto summary =
        summarize_storage("palu", 0, model_shape, prompt_tokens, select("palu", cache, context_of(cache, 0.5))[0], 2);
    CHECK(summary.n_stored == std::vector<uint32_t>(5, prompt_tokens));
    CHECK(summary.key_width == std::vector<float>{8, 8, 8, 8, 8});
    CHECK(summary.bytes.mapped == summary.bytes.total());
    CHECK_FALSE(summary.merges);
}

TEST_CASE("Palu refuses normalized keys with whitening=off, and numbers that are not finite", "[palu]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 6);
    RunContext context = context_of(cache, 0.5);
    context.projection = [](int layer, Projected which) {
        Projection projection = random_projection(layer, which, false);
        projection.is_normalised = which == Projected::keys;
        return projection;
    };
    CHECK_THROWS_WITH(parse_policy("palu:whitening=off").create()->begin(context), Contains("whitening=off"));
    CHECK_NOTHROW(select("palu", cache, context));
    CHECK_NOTHROW(select("palu:whitening=prompt", cache, context));
    CHECK_NOTHROW(select("palu:rank_share=1,whitening=off", cache, context));
    context.projection = {};
    CHECK_NOTHROW(select("palu:whitening=on", cache, context));
    CHECK_THROWS_AS(select("palu:whitening=off", cache, context), std::logic_error);
    context.calibration = {};
    CHECK_NOTHROW(select("palu:whitening=on", cache, context));
    CHECK_THROWS_WITH(select("palu", cache, context), Contains("no model is loaded"));
    cache.layers[1].values[5] = NAN;
    CHECK_THROWS_AS(select("palu:whitening=on", cache, context), ScoreError);
}

TEST_CASE("an offset must have as many numbers as a head", "[palu]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 7);
    auto selection = select("palu", cache, context_of(cache, 0.5))[0];
    selection.stored->rows[2].stored[0].values.offset.assign(15, 1.0f);
    CHECK_THROWS_WITH(require_valid_storage("palu", 0, model_shape, selection),
                      Contains("16 numbers in an offset") && Contains("15"));
}
