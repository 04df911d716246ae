#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace kvscope::engine {

/// Form of a needle: a number with a name, or a number found by one reasoning step (HeadKV's R2).
enum class NeedleKind { retrieval, reasoning };

/// A prompt as in RULER: one sentence with a number (the needle) among unrelated sentences (the haystack).
struct NeedlePrompt {
    std::string context;
    std::string question;
    std::string needle;     ///< text of the needle in the context
    std::string answer;     ///< the number
    std::string statement;  ///< sentence with the number
};

struct NeedleOptions {
    NeedleKind kind = NeedleKind::retrieval;
    int64_t n_tokens = 1000;  ///< approximate length of the context, filled with whole sentences
    double depth = 0.5;       ///< position of the needle, from 0 (start) to 1 (end)
    uint64_t seed = 0;        ///< seed of the name, the number and the order of the sentences
    std::string text{};       ///< text whose sentences form the haystack; RULER's noise if empty
};

/// @throws UsageError if the context is too short for another sentence, or the depth is outside [0, 1]
[[nodiscard]] NeedlePrompt make_needle_prompt(const checkpoint::Tokenizer& tokenizer, const NeedleOptions& options);

/// @throws UsageError if prompts of these lengths do not fit in a model's context
void require_lengths_fit_context(std::span<const int64_t> lengths, int64_t n_new, int64_t context_length);

[[nodiscard]] double string_match_score(std::string_view prediction, std::string_view answer);

}  // namespace kvscope::engine
