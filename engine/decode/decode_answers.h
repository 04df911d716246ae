#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/decode/decode.h"
#include "engine/decode/sampler.h"

namespace kvscope::engine {

struct Generation {
    std::vector<int32_t> ids;                ///< tokens, with the end-of-text token if it was generated
    double seconds = 0;                      ///< seconds of this run's steps after the first token
    std::string error;                       ///< why decoding failed; empty if it did not
    policies::StorageSwitching switching{};  ///< switches between whole and stored entries
};

using OnToken = std::function<void(size_t sequence, int32_t id)>;

/// Called before each step of a sequence whose policy stores tokens while decoding. Returns true to switch the cache
/// between whole and stored entries after that step. `is_full` is true if the entries are whole now.
using AskSwitch = std::function<bool(size_t sequence, bool is_full)>;

/// Called when sequences have ended, with all answers so far. `goes_on` says whether other sequences continue.
using OnEnd = std::function<void(std::span<const size_t> ended, std::span<const Generation> all, bool goes_on)>;

/// Decodes all sequences as one batch, each to an end-of-text token or `n_new` tokens. A sequence fails if its policy
/// or cache throws or its logits contain NaN; the result then contains its tokens so far.
/// @param first_logits (vocabulary) logits of each sequence's first token
[[nodiscard]] std::vector<Generation> decode_answers(const Transformer& model, std::span<Sequence> sequences,
                                                     std::span<const std::vector<float>> first_logits, int64_t n_new,
                                                     const SamplingOptions& sampling, std::span<const int32_t> end_ids,
                                                     Progress& progress, const OnToken& on_token = nullptr,
                                                     const OnEnd& on_end = nullptr,
                                                     const AskSwitch& ask_switch = nullptr);

}  // namespace kvscope::engine
