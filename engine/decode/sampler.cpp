#include "engine/decode/sampler.h"

#include <algorithm>
#include <cmath>

#include "engine/common/engine_error.h"
#include "kernels/index_of_largest.h"

namespace kvscope::engine {

void refuse_nan() {
    throw RunError(
        "the model's logits contain NaN: its weights are damaged, or so large that sums of them "
        "overflow; "
        "download the model's files again, or use another conversion of it");
}

int32_t greedy_token(std::span<const float> logits) {
    if (logits.empty()) return 0;
    const int64_t best = kernels::index_of_largest(logits.data(), static_cast<int64_t>(logits.size()));
    if (best < 0) refuse_nan();
    return static_cast<int32_t>(best);
}

SamplingOptions sampling_of(const RunOptions& options) {
    return {options.temperature, options.top_p, options.sampling_seed};
}

Sampler::Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
    RunOptions asked;
    asked.temperature = options.temperature;
    asked.top_p = options.top_p;
    if (const std::string problem = find_option_problem(asked); !problem.empty()) throw UsageError(problem);
}

int32_t Sampler::next(std::span<const float> logits) {
    const int32_t best = greedy_token(logits);
    if (options_.temperature == 0) return best;
    const double largest = logits[static_cast<size_t>(best)];
    candidates_.clear();
    double total = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
        const double weight = std::exp((logits[i] - largest) / options_.temperature);
        candidates_.emplace_back(static_cast<float>(weight), static_cast<int32_t>(i));
        total += weight;
    }
    if (options_.top_p < 1) {
        std::sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first > b.first : a.second < b.second;
        });
        double mass = 0;
        size_t n = 0;
        while (n < candidates_.size() && mass < options_.top_p * total) mass += candidates_[n++].first;
        candidates_.resize(n);
        total = mass;
    }
    double rest = std::uniform_real_distribution<double>(0, total)(random_);
    for (const auto& [weight, id] : candidates_) {
        rest -= weight;
        if (rest <= 0) return id;
    }
    return candidates_.back().second;
}

}  // namespace kvscope::engine
