#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace kvscope::engine {

/// Kind of a needle: a number with a name, or a step of reasoning and a number (HeadKV's R2).
enum class NeedleKind { retrieval, reasoning };

/// A needle in a haystack as in RULER: one sentence with a number among unrelated sentences.
struct NeedlePrompt {
    std::string context;
    std::string question;
    std::string needle;     ///< text of the needle in the context
    std::string answer;     ///< the number
    std::string statement;  ///< sentence with the number
};

/// Options of a needle prompt.
struct NeedleOptions {
    NeedleKind kind = NeedleKind::retrieval;
    int64_t n_tokens = 1000;  ///< approximate length of the context: as many whole sentences as fit
    double depth = 0.5;       ///< place of the needle: 0 is first, 1 is last
    uint64_t seed = 0;        ///< seed of the name, the number, and the order of the sentences
    std::string text{};  ///< source of the haystack's sentences, which are drawn repeatedly; RULER's noise if empty
};

/// @throws UsageError if no sentence fits beside the needle, or if the depth is outside [0, 1]
NeedlePrompt make_needle(const checkpoint::Tokenizer& tokenizer, const NeedleOptions& options);

/// Checks that prompts of these lengths fit in a model's context. @throws UsageError
void require_lengths(std::span<const int64_t> lengths, int64_t n_new, int64_t context_length);

/// Returns RULER's string_match_all: 1 if the prediction contains the answer, otherwise 0.
double string_match(std::string_view prediction, std::string_view answer);

}  // namespace kvscope::engine
