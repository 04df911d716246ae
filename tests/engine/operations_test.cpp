#include "engine/model/operations.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "engine/prefill/chunked_reading.h"
#include "engine/prefill/key_gradients.h"
#include "engine/prefill/prefill.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/matrix_of.h"
#include "tests/engine/relative_difference.h"
#include "tests/engine/threads.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

const std::vector<std::string> family_names{"llama-biases", "llama3-gqa-sharded", "mistral-window",
                                            "qwen2-biases", "qwen2-sliding-yarn", "qwen3-qk-norm"};

/// Returns random numbers in [-1, 1], rounded to the type.
at::Tensor numbers(const std::vector<int64_t>& sizes, at::ScalarType type, uint64_t seed) {
    const at::Tensor some = default_model_f32().transformer().weights().final_norm;
    const at::Tensor filled = some.new_empty(sizes);
    for (int64_t i = 0; i < filled.numel(); ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        filled.data_ptr<float>()[i] = static_cast<float>(seed >> 40) / 8388608.0f - 1.0f;
    }
    return filled.to(type);
}

std::vector<float> as_floats(const at::Tensor& tensor) {
    const at::Tensor packed = tensor.detach().to(at::kFloat).contiguous();
    return {packed.const_data_ptr<float>(), packed.const_data_ptr<float>() + packed.numel()};
}

/// An argument for both kinds of operations: for the kernels in the model's type, for the others in f32.
struct Operand {
    at::Tensor kernel, differentiable;
    Operand(const std::vector<int64_t>& sizes, at::ScalarType type, uint64_t seed)
        : kernel(numbers(sizes, type, seed)), differentiable(kernel.to(at::kFloat, false, true)) {}
    double difference() const { return relative_difference(as_floats(kernel), as_floats(differentiable)); }
};

const engine::Operations& with_kernels = engine::kernel_operations();
const engine::Operations& with_autograd = engine::differentiable_operations();

double apart(const at::Tensor& a, const at::Tensor& b) { return relative_difference(as_floats(a), as_floats(b)); }

engine::AttentionRead read_of(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                              const std::vector<float>& masses, const std::vector<int64_t>& first_keys,
                              std::vector<double>& sums) {
    return {.shape = {1, 6, 2, 16},
            .scale = 0.9f,
            .queries = queries.narrow(1, 0, 96),
            .keys = keys,
            .values = values,
            .masses = masses,
            .first_keys = first_keys,
            .out = queries.new_empty({queries.size(0), 96}),
            .column_sums = sums};
}

/// Returns the entries of each layer of a run's cache, in the type of the model's activations.
std::vector<engine::HeldEntries> held_by(const engine::Model& model, const std::vector<int32_t>& ids, int64_t budget,
                                         at::ScalarType type) {
    const auto policy = policies::parse_policy("kvslimmer:sinks=4,chunk=16").create();
    policies::RunContext context;
    context.shape = model.transformer().shape();
    context.n_tokens = static_cast<int64_t>(ids.size());
    context.budget = budget;
    policy->begin(context);
    engine::ChunkedRun run{
        .policy = policy.as<policies::ReadsThroughOwnCache>(), .budget = budget, .reading = {.chunk = 16}};
    engine::SilentProgress progress;
    engine::read_in_chunks(model.transformer(), ids, {&run, 1}, progress);
    REQUIRE(run.error.empty());
    std::vector<engine::HeldEntries> all;
    for (const auto& layer : run.layers)
        all.push_back({layer.entries.keys.narrow(1, 0, layer.size()).to(type),
                       layer.entries.values.narrow(1, 0, layer.size()).to(type),
                       layer.masses,
                       {layer.positions.begin(), layer.positions.end()}});
    return all;
}

at::Tensor logits_of(const engine::Transformer& model, const std::vector<engine::HeldEntries>& held,
                     std::span<const int32_t> ids, int64_t first) {
    at::Tensor residual = model.embed(ids);
    for (size_t layer = 0; layer < held.size(); ++layer)
        engine::compute_layer_for_chunk(model, static_cast<int>(layer), held[layer], first, residual);
    return model.logits(residual);
}

}  // namespace

TEST_CASE("the differentiable operations compute what the kernels compute", "[operations][processor]") {
    for (const auto model : {kernels::DType::f32, kernels::DType::bf16}) {
        CAPTURE(kernels::name_of(model));
        const at::ScalarType type = with_kernels.activations(model);
        CHECK(with_autograd.activations(model) == at::kFloat);
        // Results in bf16 are rounded once, at the end.
        const double bound = model == kernels::DType::bf16 ? 3e-3 : 1e-6;
        const int64_t n = 9, dim = 64;
        const at::Tensor norm_weight = numbers({dim}, at::kFloat, 1), head_weight = numbers({16}, at::kFloat, 2);
        const at::Tensor residual = numbers({n, dim}, at::kFloat, 3);

        CHECK(apart(with_kernels.norm(residual, norm_weight, 1e-5f, model),
                    with_autograd.norm(residual, norm_weight, 1e-5f, model)) < bound);

        Operand heads({n, 160}, type, 4);
        with_kernels.norm_heads(heads.kernel, 32, 4, head_weight, 1e-5f);
        with_autograd.norm_heads(heads.differentiable, 32, 4, head_weight, 1e-5f);
        CHECK(heads.difference() < bound);

        const Operand delta({n, dim}, type, 5);
        at::Tensor a = residual.clone(), b = residual.clone();
        CHECK(apart(with_kernels.add_norm(a, delta.kernel, norm_weight, 1e-5f),
                    with_autograd.add_norm(b, delta.differentiable, norm_weight, 1e-5f)) < bound);
        CHECK(apart(a, b) == 0);
        with_kernels.add(a, delta.kernel);
        with_autograd.add(b, delta.differentiable);
        CHECK(apart(a, b) == 0);

        const engine::Matrix weight = matrix_of(numbers({48, dim}, type, 6));
        const at::Tensor bias = numbers({48}, at::kFloat, 7);
        const Operand x({n, dim}, type, 8);
        CHECK(apart(with_kernels.product(x.kernel, weight, bias),
                    with_autograd.product(x.differentiable, weight, bias)) < bound);
        CHECK(apart(with_kernels.product(x.kernel, weight, {}), with_autograd.product(x.differentiable, weight, {})) <
              bound);
        CHECK(apart(with_kernels.logits(x.kernel, weight), with_autograd.logits(x.differentiable, weight)) < 1e-6);

        const engine::Rotation rotation{numbers({n, 8}, at::kFloat, 9), numbers({n, 8}, at::kFloat, 10)};
        Operand turned({n, 96}, type, 11);
        with_kernels.rotate(turned.kernel, 4, rotation);
        with_autograd.rotate(turned.differentiable, 4, rotation);
        CHECK(turned.difference() < bound);
        CHECK(apart(turned.kernel.narrow(1, 64, 32), numbers({n, 96}, type, 11).narrow(1, 64, 32)) == 0);

        const Operand gate_up({n, 80}, type, 12);
        CHECK(apart(with_kernels.swiglu(gate_up.kernel), with_autograd.swiglu(gate_up.differentiable)) < bound);
    }
}

TEST_CASE("the differentiable operations and their derivatives are bit-identical for any number of threads",
          "[operations][processor]") {
    const auto found = [](int threads, int64_t n) {
        const Threads these(threads);
        std::vector<std::vector<float>> all;
        at::Tensor gate_up = numbers({n, 2 * 333}, at::kFloat, 1);
        gate_up.set_requires_grad(true);
        const at::Tensor activated = with_autograd.swiglu(gate_up);
        activated.backward(numbers({n, 333}, at::kFloat, 2));
        at::Tensor keys = numbers({2, n, 16}, at::kFloat, 3), values = numbers({2, n, 16}, at::kFloat, 4);
        keys.set_requires_grad(true);
        values.set_requires_grad(true);
        std::vector<double> sums;
        const std::vector<float> masses(static_cast<size_t>(n), 1.0f);
        const std::vector<int64_t> first_keys;
        auto read = read_of(numbers({n, 96}, at::kFloat, 5), keys, values, masses, first_keys, sums);
        with_autograd.attend({&read, 1});
        read.out.backward(numbers({n, 96}, at::kFloat, 6));
        for (const at::Tensor& tensor : {activated, gate_up.grad(), read.out.detach(), keys.grad(), values.grad()})
            all.push_back(as_floats(tensor));
        return all;
    };
    for (const int64_t n : {7, 50, 403}) {
        CAPTURE(n);
        const auto alone = found(1, n);
        for (const int threads : {2, 3}) CHECK(found(threads, n) == alone);
    }
}

TEST_CASE("both kinds of attention count masses and see the same entries", "[operations][processor]") {
    for (const auto model : {kernels::DType::f32, kernels::DType::bf16}) {
        const at::ScalarType type = with_kernels.activations(model);
        const double bound = model == kernels::DType::bf16 ? 5e-3 : 1e-6;
        const int64_t n = 7, m = 20;
        const Operand queries({n, 128}, type, 1), keys({2, m + 5, 16}, type, 2), values({2, m + 5, 16}, type, 3);
        std::vector<float> masses(static_cast<size_t>(m), 1.0f);
        for (const bool merged : {false, true})
            for (const bool window : {false, true}) {
                CAPTURE(kernels::name_of(model), merged, window);
                for (size_t i = 0; merged && i < 10; ++i) masses[i] = static_cast<float>(1 + i % 4);
                std::vector<int64_t> first;
                for (int64_t i = 0; window && i < n; ++i) first.push_back(4 + i);
                std::vector<double> sums(6 * static_cast<size_t>(m), 0.0), other_sums = sums;
                auto a = read_of(queries.kernel, keys.kernel, values.kernel, masses, first, sums);
                auto b = read_of(queries.differentiable, keys.differentiable, values.differentiable, masses, first,
                                 other_sums);
                with_kernels.attend({&a, 1});
                with_autograd.attend({&b, 1});
                CHECK(apart(a.out, b.out) < bound);
                for (size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == Approx(other_sums[i]).margin(1e-5));
            }
    }
}

TEST_CASE("a chunk after a merged cache has the same logits with both kinds of operations", "[operations]") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16})
        for (const std::string& name : family_names) {
            const auto model = small_model(name, dtype);
            const auto& transformer = model.transformer().on_processor();
            CAPTURE(name, kernels::name_of(dtype));
            const auto ids = some_ids(model, 100);
            const std::vector<int32_t> past(ids.begin(), ids.begin() + 80), chunk(ids.begin() + 80, ids.end());
            for (const int64_t budget : {100, 30}) {
                const auto a =
                    logits_of(transformer, held_by(model, past, budget, transformer.scalar_type()), chunk, 80);
                const auto b = logits_of(transformer.computed_with(with_autograd),
                                         held_by(model, past, budget, at::kFloat), chunk, 80);
                CHECK(apart(a, b) < (dtype == kernels::DType::bf16 ? 3e-2 : 5e-6));
                if (budget == 30) continue;
                // Without merges, the logits are bit-identical to the prefill's.
                engine::SilentProgress progress;
                engine::PrefillRequest request;
                request.ids = ids;
                const auto whole = engine::prefill(transformer, request, nullptr, progress);
                CHECK(as_floats(a.narrow(0, 19, 1)) == whole.last_logits);
            }
        }
}

TEST_CASE("gradients with respect to keys equal finite differences, for any model and cache", "[operations]") {
    for (const std::string& name : family_names) {
        const auto model = small_model(name, kernels::DType::f32);
        const auto& transformer = model.transformer().on_processor();
        CAPTURE(name);
        const auto ids = some_ids(model, 70);
        const std::vector<int32_t> past(ids.begin(), ids.begin() + 56), chunk(ids.begin() + 56, ids.end());
        auto held = held_by(model, past, 30, at::kFloat);
        engine::ChunkRead read{.ids = chunk, .first = 56, .held = held, .by_own_keys = true};
        at::Tensor residual = transformer.embed(chunk);
        for (size_t layer = 0; layer < held.size(); ++layer) {
            read.residuals.push_back(residual.clone());
            engine::compute_layer_for_chunk(transformer, static_cast<int>(layer), held[layer], 56, residual);
        }
        read.residuals.push_back(residual);
        const auto gradients = engine::key_gradients(transformer, read, engine::SilentProgress());
        REQUIRE(gradients.size() == held.size());
        const auto loss = [&] {
            const at::Tensor logits = logits_of(transformer, held, chunk, 56);
            double sum = 0;
            for (size_t i = 0; i + 1 < chunk.size(); ++i) {
                const float* row = logits.const_data_ptr<float>() + static_cast<int64_t>(i) * logits.size(1);
                double total = 0;
                for (int64_t j = 0; j < logits.size(1); ++j) total += std::exp(static_cast<double>(row[j]));
                sum += std::log(total) - static_cast<double>(row[chunk[i + 1]]);
            }
            return sum / static_cast<double>(chunk.size() - 1);
        };
        for (size_t layer = 0; layer < held.size(); ++layer) {
            const auto n = static_cast<int64_t>(held[layer].masses.size());
            const auto shape = transformer.shape();
            REQUIRE(gradients[layer].size(1) == n + static_cast<int64_t>(chunk.size()));
            // In the direction of the gradient, where the loss changes most.
            const at::Tensor along = gradients[layer].narrow(1, 0, n).contiguous();
            held[layer].keys = held[layer].keys.contiguous();
            float* keys = held[layer].keys.data_ptr<float>();
            const std::vector<float> before(keys, keys + n * shape.n_kv_heads * shape.head_dim);
            const std::vector<float> step = as_floats(along);
            double squares = 0;
            for (const float number : step) squares += static_cast<double>(number) * static_cast<double>(number);
            REQUIRE(squares > 0);
            const double size = 0.02 / std::sqrt(squares);
            double change[2] = {0, 0};
            for (const int sign : {0, 1}) {
                for (size_t i = 0; i < before.size(); ++i)
                    keys[i] = before[i] + static_cast<float>((sign ? size : -size) * static_cast<double>(step[i]));
                change[sign] = loss();
            }
            std::copy(before.begin(), before.end(), keys);
            CAPTURE(layer);
            CHECK((change[1] - change[0]) / (2 * size) == Approx(squares).epsilon(0.02));
        }
    }
}
