#include "engine/calibration.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "engine/calibration_text.h"
#include "engine/files/user_cache_file.h"
#include "engine/model/product.h"
#include "engine/model/projection_weights.h"
#include "engine/prefill/prefill.h"
#include "kernels/cpu_features.h"

namespace kvscope::engine {
namespace {

using policies::Projected;

constexpr Projected both[] = {Projected::keys, Projected::values};

size_t triangle(size_t width) { return width * (width + 1) / 2; }

/// Returns the projection's bias, (G d); empty if the model has none or normalizes the projection afterwards.
std::vector<float> bias_of(const Transformer& model, int layer, Projected which) {
    const auto projection = copy_projection_weights(model, layer, which);
    return projection.is_normalised ? std::vector<float>() : projection.bias;
}

/// Adds the second moments of a projection without its bias to a lower triangle.
void add_moments(const policies::EntriesView& view, const policies::ModelShape& shape, size_t n,
                 const std::vector<float>& bias, double* sums) {
    auto x = numbers_by_channel(view, shape.n_kv_heads, shape.head_dim, 0, static_cast<int64_t>(n));
    const size_t width = x.size() / n;
    for (size_t i = 0; !bias.empty() && i < x.size(); ++i) x[i] -= bias[i / n];
    const std::vector<float> products = gram_matrix(x, width);
    for (size_t i = 0; i < width; ++i)
        for (size_t j = 0; j <= i; ++j) *sums++ += double{products[i * width + j]};
}

std::vector<double> sums_over(const Model& model, std::span<const int32_t> ids, size_t sequence, Progress& progress) {
    const auto shape = model.transformer().shape();
    const size_t each = triangle(static_cast<size_t>(shape.n_kv_heads) * static_cast<size_t>(shape.head_dim));
    std::vector<std::vector<float>> biases;
    for (int layer = 0; layer < shape.n_layers; ++layer)
        for (const Projected which : both) biases.push_back(bias_of(model.transformer(), layer, which));
    std::vector<double> sums(biases.size() * each, 0.0);
    progress.begin("calibration", static_cast<int64_t>((ids.size() + sequence - 1) / sequence), "sequences");
    for (size_t first = 0; first < ids.size(); first += sequence) {
        const size_t n = std::min(sequence, ids.size() - first);
        read_layers(model.transformer(), ids.subspan(first, n), 0, progress, [&](PrefillLayer& layer) {
            for (const Projected which : both) {
                const size_t at = 2 * static_cast<size_t>(layer.layer) + (which == Projected::keys ? 0 : 1);
                const auto& view = which == Projected::keys ? layer.prompt.keys_before_rope : layer.prompt.values;
                add_moments(view, shape, n, biases[at], sums.data() + at * each);
            }
        });
        progress.advance(static_cast<int64_t>(first / sequence) + 1);
    }
    return sums;
}

}  // namespace

Calibration::Calibration(const Model& model, Progress& progress) {
    const auto shape = model.transformer().shape();
    width_ = static_cast<size_t>(shape.n_kv_heads) * static_cast<size_t>(shape.head_dim);
    sums_.resize(2 * static_cast<size_t>(shape.n_layers) * triangle(width_));
    std::vector<int32_t> ids = model.tokenizer().encode(calibration_text, false, false, progress.stop_token());
    ids.resize(std::min(ids.size(), max_tokens));
    const size_t length = std::min(sequence, static_cast<size_t>(model.config().context_length));
    // The number type and the processor's instructions affect rounding.
    const auto identity =
        fmt::format("kvscope calibration 1\n{} {} {}\n{:016x}, sequences of {}\n", model.fingerprint(),
                    kernels::name_of(model.transformer().dtype()), kernels::name_of(kernels::simd_level()),
                    XXH3_64bits(ids.data(), ids.size() * sizeof(int32_t)), length);
    const checkpoint::UserCacheFile entry(
        "calibration", fmt::format("{:016x}.f32", XXH3_64bits(identity.data(), identity.size())), identity);
    if (const auto kept = entry.find(sums_.size() * sizeof(float))) {
        std::memcpy(sums_.data(), kept->data(), kept->size());
        return;
    }
    const auto sums = sums_over(model, ids, length, progress);
    std::transform(sums.begin(), sums.end(), sums_.begin(), [](double sum) { return static_cast<float>(sum); });
    entry.store({reinterpret_cast<const char*>(sums_.data()), sums_.size() * sizeof(float)});
}

std::vector<double> Calibration::moments(int layer, Projected which) const {
    const size_t at = 2 * static_cast<size_t>(layer) + (which == Projected::keys ? 0 : 1);
    const float* from = sums_.data() + at * triangle(width_);
    std::vector<double> moments(width_ * width_, 0.0);
    for (size_t i = 0; i < width_; ++i)
        for (size_t j = 0; j <= i; ++j) moments[i * width_ + j] = double{*from++};
    return moments;
}

std::shared_ptr<const Calibration> find_or_make_calibration(const Model& model, Progress& progress) {
    WithoutPauses steady(progress);  // does not pause, because another job on this model may wait for the shared result
    return model.memo()->get<Calibration>("calibration", [&] { return Calibration(model, steady); });
}

}  // namespace kvscope::engine
