#include "engine/prefill/projection_measures.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/prefill/gradient_alignment.h"
#include "engine/prefill/prefill.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/threads.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

trace::PromptRecord measures_of(const engine::Model& model, const std::vector<int32_t>& ids) {
    trace::PromptRecord record;
    engine::PrefillRequest request;
    request.ids = ids;
    request.projections = &record;
    request.keep_cache = false;
    engine::SilentProgress progress;
    engine::prefill(model.transformer(), request, nullptr, progress);
    return record;
}

double cosine(const double* a, const double* b, int64_t d) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t c = 0; c < d; ++c) {
        ab += a[c] * b[c];
        aa += a[c] * a[c];
        bb += b[c] * b[c];
    }
    return ab / std::sqrt(aa * bb);
}

/// Returns x W of the first layer, without biases and norms, (n, (H + 2G) d).
std::vector<double> projected(const engine::Transformer& given, const std::vector<int32_t>& ids) {
    const engine::Transformer& model = given.on_processor();
    const auto& w = model.weights().layers[0];
    const at::Tensor x = model.operations()
                             .norm(model.embed(ids), w.input_norm, model.config().rms_norm_eps, model.dtype())
                             .to(at::kFloat)
                             .contiguous();
    const at::Tensor weight = w.qkv.numbers().to(at::kFloat).contiguous();
    const int64_t rows = weight.size(0), hidden = weight.size(1);
    std::vector<double> y;
    for (int64_t t = 0; t < x.size(0); ++t)
        for (int64_t r = 0; r < rows; ++r) {
            double sum = 0;
            for (int64_t c = 0; c < hidden; ++c)
                sum += static_cast<double>(x.const_data_ptr<float>()[t * hidden + c]) *
                       static_cast<double>(weight.const_data_ptr<float>()[r * hidden + c]);
            y.push_back(sum);
        }
    return y;
}

}  // namespace

TEST_CASE("tokens are evenly spaced: the middles of equal parts", "[projections]") {
    CHECK(engine::evenly_spaced_tokens(3, 256) == std::vector<int64_t>{0, 1, 2});
    CHECK(engine::evenly_spaced_tokens(10, 4) == std::vector<int64_t>{1, 3, 6, 8});
    CHECK(engine::evenly_spaced_tokens(1, 1) == std::vector<int64_t>{0});
}

TEST_CASE("mode contributions add up to the cosines of neighbors, without biases and norms", "[projections]") {
    const std::string name = GENERATE("llama3-gqa-sharded", "qwen2-biases", "qwen3-qk-norm", "mistral-window");
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    CAPTURE(name, kernels::name_of(dtype));
    const auto model = small_model(name, dtype);
    const auto shape = model.transformer().shape();
    const auto ids = some_ids(model, 90);
    const auto record = measures_of(model, ids);
    const auto y = projected(model.transformer(), ids);
    const double bound = dtype == kernels::DType::bf16 ? 4e-3 : 1e-5;
    const int64_t d = shape.head_dim, h = shape.n_heads, g = shape.n_kv_heads, width = (h + 2 * g) * d;
    struct Part {
        int64_t first, heads;
        const std::vector<float>&adjacent, &modes;
    };
    const std::array<Part, 3> parts{{{0, h, record.adjacent_similarity_q, record.mode_contribution_q},
                                     {h, g, record.adjacent_similarity_k, record.mode_contribution_k},
                                     {h + g, g, record.adjacent_similarity_v, record.mode_contribution_v}}};
    for (const Part& part : parts) {
        REQUIRE(part.adjacent.size() == static_cast<size_t>(shape.n_layers));
        REQUIRE(part.modes.size() == static_cast<size_t>(shape.n_layers * part.heads * d));
        double mean = 0;
        for (int64_t head = 0; head < part.heads; ++head) {
            double expected = 0, sum = 0;
            for (size_t t = 1; t < ids.size(); ++t) {
                const double* row = y.data() + static_cast<int64_t>(t) * width + (part.first + head) * d;
                expected += cosine(row - width, row, d) / static_cast<double>(ids.size() - 1);
            }
            for (int64_t i = 0; i < d; ++i) sum += static_cast<double>(part.modes[static_cast<size_t>(head * d + i)]);
            CHECK(sum == Approx(expected).margin(bound));
            mean += expected / static_cast<double>(part.heads);
        }
        CHECK(static_cast<double>(part.adjacent[0]) == Approx(mean).margin(bound));
        for (size_t layer = 0; layer < part.adjacent.size(); ++layer) {
            double sum = 0;
            const auto each = static_cast<size_t>(part.heads * d);
            for (size_t i = 0; i < each; ++i) sum += static_cast<double>(part.modes[layer * each + i]);
            CHECK(sum / static_cast<double>(part.heads) ==
                  Approx(static_cast<double>(part.adjacent[layer])).margin(1e-5));
        }
    }
}

TEST_CASE("similarities are those of cached keys and values at evenly spaced tokens", "[projections]") {
    const auto model = small_model("qwen2-biases", kernels::DType::f32);
    const auto& transformer = model.transformer();
    const auto shape = transformer.shape();
    const auto ids = some_ids(model, 300);
    const auto record = measures_of(model, ids);
    const at::Tensor first = transformer.project(0, transformer.embed(ids)).cpu().contiguous();
    const int64_t d = shape.head_dim, h = shape.n_heads, g = shape.n_kv_heads, width = first.size(1);
    const auto tokens = engine::evenly_spaced_tokens(300, engine::similarity_tokens);
    REQUIRE(tokens.size() == 256);
    for (int64_t part = 0; part < 2; ++part) {
        const auto& of_heads = part == 0 ? record.head_similarity_k : record.head_similarity_v;
        const auto& of_layers = part == 0 ? record.layer_similarity_k : record.layer_similarity_v;
        REQUIRE(of_heads.size() == static_cast<size_t>(shape.n_layers * g * g));
        REQUIRE(of_layers.size() == static_cast<size_t>(shape.n_layers * shape.n_layers));
        double expected = 0;
        for (const int64_t t : tokens) {
            std::vector<double> vectors[2];
            for (int64_t head = 0; head < 2; ++head) {
                const float* from = first.const_data_ptr<float>() + t * width + (h + part * g + head) * d;
                vectors[head].assign(from, from + d);
            }
            expected += cosine(vectors[0].data(), vectors[1].data(), d) / 256;
        }
        CHECK(static_cast<double>(of_heads[1]) == Approx(expected).margin(1e-6));
        CHECK(of_heads[2] == of_heads[1]);
        CHECK(of_heads[0] == Approx(1.0f));
        CHECK(of_layers[1] == of_layers[2]);
        CHECK(of_layers[3] == Approx(1.0f));
        CHECK(std::abs(of_layers[1]) < 1.0f);
    }
}

TEST_CASE("a single token has no neighbors, and two tokens have no alignment", "[projections]") {
    const auto& model = tiny_model();
    const auto record = measures_of(model, some_ids(model, 1));
    for (const float cosine : record.adjacent_similarity_k) CHECK(cosine == 0.0f);
    for (const float contribution : record.mode_contribution_v) CHECK(contribution == 0.0f);
    CHECK(record.layer_similarity_k[0] == Approx(1.0f));
    engine::SilentProgress progress;
    CHECK(engine::gradient_alignment(model.transformer(), some_ids(model, 2), progress).c11.empty());
    CHECK(engine::gradient_alignment(model.transformer(), some_ids(model, 3), progress).c11.size() == 8);
}

TEST_CASE("projection measures and gradient alignment do not depend on the number of threads", "[projections]") {
    const std::string name = GENERATE("qwen2-biases", "mistral-window");
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    CAPTURE(name, kernels::name_of(dtype));
    const auto model = small_model(name, dtype);
    const auto ids = some_ids(model, 150);
    engine::SilentProgress progress;
    const auto with = [&](int n) {
        const Threads threads(n);
        return std::pair(measures_of(model, ids), engine::gradient_alignment(model.transformer(), ids, progress));
    };
    const auto [record, alignment] = with(1);
    const auto shape = model.transformer().shape();
    for (const auto* cosines : {&alignment.c11, &alignment.c12, &alignment.c22}) {
        REQUIRE(cosines->size() == static_cast<size_t>(shape.n_layers * shape.n_heads));
        for (const float cosine : *cosines) CHECK((cosine != 0.0f && std::abs(cosine) <= 1.0f));
    }
    for (const int n : {2, 3}) {
        const auto [other, other_alignment] = with(n);
        CHECK(same_bits(record.adjacent_similarity_q, other.adjacent_similarity_q));
        CHECK(same_bits(record.mode_contribution_q, other.mode_contribution_q));
        CHECK(same_bits(record.mode_contribution_k, other.mode_contribution_k));
        CHECK(same_bits(record.mode_contribution_v, other.mode_contribution_v));
        CHECK(same_bits(record.layer_similarity_k, other.layer_similarity_k));
        CHECK(same_bits(record.head_similarity_v, other.head_similarity_v));
        CHECK(same_bits(alignment.c11, other_alignment.c11));
        CHECK(same_bits(alignment.c12, other_alignment.c12));
        CHECK(same_bits(alignment.c22, other_alignment.c22));
    }
}
