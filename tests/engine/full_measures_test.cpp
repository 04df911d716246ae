#include <catch2/catch.hpp>
#include <cmath>

#include "tests/engine/experiment_on_disk.h"
#include "tests/trace/whole_records.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

/// Checks the heads' mode contributions against listed samples and sums.
void check_modes(const std::vector<float>& modes, const nlohmann::json& samples, const nlohmann::json& squares,
                 size_t heads, size_t d) {
    for (const auto& sample : samples) {
        const size_t first = (sample[0].get<size_t>() * heads + sample[1].get<size_t>()) * d;
        CAPTURE(sample[0], sample[1]);
        for (size_t i = 0; i < d; ++i)
            CHECK(modes.at(first + i) == Approx(sample[2][i].get<float>()).epsilon(1e-3).margin(2e-6));
    }
    for (size_t layer = 0; layer < squares.size(); ++layer)
        for (size_t head = 0; head < heads; ++head) {
            double sum = 0;
            for (size_t i = 0; i < d; ++i) {
                const double value = modes.at((layer * heads + head) * d + i);
                sum += value * value;
            }
            CAPTURE(layer, head);
            CHECK(sum == Approx(squares[layer][head].get<double>()).epsilon(1e-3));
        }
}

/// Checks the upper triangle of a symmetric matrix (n, n) of cosines.
void check_triangle(const float* matrix, const nlohmann::json& expected, size_t n) {
    size_t next = 0;
    for (size_t a = 0; a < n; ++a)
        for (size_t b = a + 1; b < n; ++b) {
            CAPTURE(a, b);
            CHECK(matrix[a * n + b] == Approx(expected[next++].get<float>()).margin(1e-5));
        }
}

}  // namespace

// Reference: full/* and H2O's sums in NumPy, f64 (scripts/golden/full_measures.py).
TEST_CASE("the measures of the full cache equal the reference's", "[arithmetic][default_model]") {
    const TemporaryFolder folder;
    const auto& model = default_model_f32();
    const auto all = golden("engine/full_measures.json")["prompts"];
    const auto ids = golden("engine/prompt_ids.json")["prompts"]["short"]["ids"].get<std::vector<int32_t>>();
    const auto& expected = all["short"];
    auto options = options_of(1, false);
    options.alignment = true;
    const auto reader = run_experiment(folder, "t.h5", model, {prompt_of_ids(ids)},
                                       {plan("h2o:granularity=query_head", "64")}, options);
    const auto record = trace::prompt_record(reader, 0);
    const auto h2o = reader.run_record(0, 1);
    const auto shape = model.transformer().shape();
    const auto n = ids.size();
    const auto heads = static_cast<size_t>(shape.n_heads);
    REQUIRE(record.window == expected["window"].get<int>());
    const auto w = static_cast<size_t>(record.window);

    for (const auto& sample : expected["window_attention_samples"]) {
        const size_t at = (sample[0].get<size_t>() * heads + sample[1].get<size_t>()) * n + sample[2].get<size_t>();
        CHECK(record.window_attention[at] == Approx(sample[3].get<float>()).epsilon(1e-3).margin(1e-7));
    }
    for (size_t layer = 0; layer < expected["window_attention_square_sum"].size(); ++layer) {
        for (size_t h = 0; h < heads; ++h) {
            double squares = 0, centre = 0;
            for (size_t j = 0; j < n; ++j) {
                const double value = record.window_attention[(layer * heads + h) * n + j];
                squares += value * value;
                centre += value * static_cast<double>(j);
            }
            CAPTURE(layer, h);
            CHECK(squares == Approx(expected["window_attention_square_sum"][layer][h].get<double>()).epsilon(1e-3));
            CHECK(centre == Approx(expected["window_attention_centre"][layer][h].get<double>()).epsilon(1e-3));
        }
    }
    for (const auto& sample : expected["query_similarity_samples"]) {
        const size_t at =
            ((sample[0].get<size_t>() * heads + sample[1].get<size_t>()) * w + sample[2].get<size_t>()) * w +
            sample[3].get<size_t>();
        CHECK(record.query_similarity[at] == Approx(sample[4].get<float>()).epsilon(1e-3));
    }
    for (size_t layer = 0; layer < expected["head_jsd"].size(); ++layer) {
        size_t next = 0;
        for (size_t a = 0; a < heads; ++a) {
            for (size_t b = a + 1; b < heads; ++b) {
                CAPTURE(layer, a, b);
                CHECK(record.head_jsd[(layer * heads + a) * heads + b] ==
                      Approx(expected["head_jsd"][layer][next++].get<float>()).epsilon(2e-3).margin(1e-6));
            }
        }
        CHECK(record.adjacent_similarity_q[layer] ==
              Approx(expected["adjacent_similarity"]["q"][layer].get<float>()).epsilon(1e-3));
        CHECK(record.adjacent_similarity_k[layer] ==
              Approx(expected["adjacent_similarity"]["k"][layer].get<float>()).epsilon(1e-3));
        CHECK(record.adjacent_similarity_v[layer] ==
              Approx(expected["adjacent_similarity"]["v"][layer].get<float>()).epsilon(1e-3).margin(1e-5));
    }
    for (const auto& sample : expected["attention_sums_samples"]) {
        const size_t at = (sample[0].get<size_t>() * heads + sample[1].get<size_t>()) * n + sample[2].get<size_t>();
        CHECK(h2o.scores.at(at) == Approx(sample[3].get<float>()).epsilon(1e-3));
    }

    const auto kv_heads = static_cast<size_t>(shape.n_kv_heads), d = static_cast<size_t>(shape.head_dim);
    const auto& modes = expected["mode_contribution"];
    const auto& squares = expected["mode_contribution_square_sum"];
    check_modes(record.mode_contribution_q, modes["q"], squares["q"], heads, d);
    check_modes(record.mode_contribution_k, modes["k"], squares["k"], kv_heads, d);
    check_modes(record.mode_contribution_v, modes["v"], squares["v"], kv_heads, d);
    const auto layers = static_cast<size_t>(shape.n_layers);
    check_triangle(record.layer_similarity_k.data(), expected["layer_similarity"]["k"], layers);
    check_triangle(record.layer_similarity_v.data(), expected["layer_similarity"]["v"], layers);
    const auto& within = expected["head_similarity"];
    const auto& alignment = expected["gradient_alignment"];
    for (size_t layer = 0; layer < layers; ++layer) {
        CAPTURE(layer);
        const size_t first = layer * kv_heads * kv_heads;
        check_triangle(record.head_similarity_k.data() + first, within["k"][layer], kv_heads);
        check_triangle(record.head_similarity_v.data() + first, within["v"][layer], kv_heads);
        for (size_t h = 0; h < heads; ++h) {
            CAPTURE(h);
            const size_t at = layer * heads + h;
            // c11 and c22 change sign at alpha = 1/2, where rounding decides for one or two pairs.
            CHECK(record.gradient_alignment_c11.at(at) == Approx(alignment["c11"][layer][h].get<float>()).margin(1e-4));
            CHECK(record.gradient_alignment_c12.at(at) == Approx(alignment["c12"][layer][h].get<float>()).margin(1e-5));
            CHECK(record.gradient_alignment_c22.at(at) == Approx(alignment["c22"][layer][h].get<float>()).margin(1e-4));
        }
    }
}
