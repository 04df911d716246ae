#include "engine/checkpoint/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kvscope::checkpoint {
namespace {

constexpr float pi = std::numbers::pi_v<float>;

/// Llama 3.1: divides low frequencies by the factor, keeps high frequencies, and interpolates between them.
float scale_llama3(float frequency, const RopeScaling& scaling) {
    const auto factor = static_cast<float>(scaling.factor);
    const auto original = static_cast<float>(scaling.original_context);
    const auto low = static_cast<float>(scaling.low_freq_factor);
    const auto high = static_cast<float>(scaling.high_freq_factor);
    const float wavelength = 2 * pi / frequency;
    if (wavelength > original / low) return frequency / factor;
    if (wavelength < original / high) return frequency;
    const float smooth = (original / wavelength - low) / (high - low);
    return (1 - smooth) * frequency / factor + smooth * frequency;
}

/// YaRN (arXiv 2309.00071): divides slow rotations by the factor, keeps fast rotations, and interpolates between them.
std::vector<float> yarn_frequencies(const RopeScaling& scaling, double theta, int d) {
    const auto turns_to_dimension = [&](double turns) {
        return d * std::log(static_cast<double>(scaling.original_context) / (turns * 2 * std::numbers::pi)) /
               (2 * std::log(theta));
    };
    double low = turns_to_dimension(scaling.beta_fast);
    double high = turns_to_dimension(scaling.beta_slow);
    if (scaling.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, d - 1.0);
    if (low == high) high += 0.001;

    std::vector<float> frequencies;
    for (int i = 0; i < d / 2; ++i) {
        const float period = std::pow(static_cast<float>(theta), static_cast<float>(2 * i) / static_cast<float>(d));
        const float ramp = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
        const float unscaled = 1 - std::clamp(ramp, 0.0f, 1.0f);
        const float interpolated = 1.0f / (static_cast<float>(scaling.factor) * period);
        frequencies.push_back(interpolated * (1 - unscaled) + 1.0f / period * unscaled);
    }
    return frequencies;
}

}  // namespace

// Computes in f32 and in the order of transformers, so that angles agree even at positions in the thousands.
std::vector<float> ModelConfig::inverse_frequencies() const {
    std::vector<float> frequencies;
    if (rope_scaling.kind == RopeScaling::Kind::yarn) {
        frequencies = yarn_frequencies(rope_scaling, rope_theta, head_dim);
    } else {
        for (int i = 0; i < head_dim / 2; ++i) {
            const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
            float frequency = 1.0f / std::pow(static_cast<float>(rope_theta), exponent);
            if (rope_scaling.kind == RopeScaling::Kind::linear) frequency /= static_cast<float>(rope_scaling.factor);
            if (rope_scaling.kind == RopeScaling::Kind::llama3) frequency = scale_llama3(frequency, rope_scaling);
            frequencies.push_back(frequency);
        }
    }
    for (size_t i = 0; i < rope_factors.size(); ++i) frequencies[i] /= rope_factors[i];
    return frequencies;
}

}  // namespace kvscope::checkpoint
