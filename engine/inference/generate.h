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

/// The answer of one run.
struct Generation {
    std::vector<int32_t> ids;         ///< tokens, including the end-of-text token if it was generated
    double seconds = 0;               ///< time of the steps after the first token, while this run was decoding
    std::string error;                ///< why decoding failed; empty if it did not
    policies::Switching switching{};  ///< changes of the cache's form until the end
};

/// Called with each new token.
using OnToken = std::function<void(size_t sequence, int32_t id)>;

/// Called before each step of a sequence whose policy stores tokens while decoding. Returns true to switch its cache
/// between the whole and the stored form; `is_full` says whether it is whole now.
using AskSwitch = std::function<bool(size_t sequence, bool is_full)>;

/// Called with the sequences that have just ended, and all answers so far. `goes_on` says whether others continue.
using OnEnd = std::function<void(std::span<const size_t> ended, std::span<const Generation> all, bool goes_on)>;

/// Decodes all sequences as one batch, each up to an end token or `n_new` tokens. A sequence fails if its policy or
/// cache throws or its logits contain NaN; it then keeps the tokens decoded so far.
/// @param first_logits for each sequence, the (vocabulary) logits of its first token
std::vector<Generation> generate(const Transformer& model, std::span<Sequence> sequences,
                                 std::span<const std::vector<float>> first_logits, int64_t n_new,
                                 const SamplingOptions& sampling, std::span<const int32_t> end_ids, Progress& progress,
                                 const OnToken& on_token = nullptr, const OnEnd& on_end = nullptr,
                                 const AskSwitch& ask_switch = nullptr);

}  // namespace kvscope::engine
