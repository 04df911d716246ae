#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/inference/decode.h"
#include "engine/inference/sampler.h"

namespace kvscope::engine {

/// One run's answer.
struct Generation {
    std::vector<int32_t> ids;         ///< the end-of-text token included, where it came
    double seconds = 0;               ///< of the steps after the first token, while this run was decoding
    std::string error;                ///< why it ends before its time; empty where it does not
    policies::Switching switching{};  ///< as far as it came
};

/// Called with each token as soon as it is drawn.
using OnToken = std::function<void(size_t sequence, int32_t id)>;

/// Asked before each step of a sequence whose policy stores tokens while it decodes: whether its cache, which is whole
/// now or not, is to change between the two behind that step.
using AskSwitch = std::function<bool(size_t sequence, bool is_full)>;

/// Called with the sequences that have ended, as soon as they have; their caches are the caller's again. `all` are the
/// answers so far; `goes_on`: others are still decoded.
using OnEnd = std::function<void(std::span<const size_t> ended, std::span<const Generation> all, bool goes_on)>;

/// Decodes all sequences as one batch, each until an end token or `n_new` tokens; a finished one leaves the batch. So
/// does one that fails (its policy or its cache throws, its logits hold NaN), with what it has decoded; one that has
/// failed before is handed over at once.
/// @param first_logits for each sequence the (vocabulary) logits that its first token is drawn from
/// @throws Cancelled
std::vector<Generation> generate(const Transformer& model, std::span<Sequence> sequences,
                                 std::span<const std::vector<float>> first_logits, int64_t n_new,
                                 const SamplingOptions& sampling, std::span<const int32_t> end_ids, Progress& progress,
                                 const OnToken& on_token = nullptr, const OnEnd& on_end = nullptr,
                                 const AskSwitch& ask_switch = nullptr);

}  // namespace kvscope::engine
