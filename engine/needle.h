#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace kvscope::engine {

/// What a needle says: a number under a name, or a step of reasoning and the number (HeadKV's R2).
enum class NeedleKind { retrieval, reasoning };

/// A needle in a haystack of RULER's kind: one sentence with a number among sentences that have nothing to do with it.
struct NeedlePrompt {
    std::string context;
    std::string question;
    std::string needle;     ///< as it stands in the context
    std::string answer;     ///< the number
    std::string statement;  ///< the sentence that says the number
};

struct NeedleOptions {
    NeedleKind kind = NeedleKind::retrieval;
    int64_t n_tokens = 1000;  ///< of the context, about: whole sentences that do not exceed it
    double depth = 0.5;       ///< 0: the needle comes first, 1: last
    uint64_t seed = 0;        ///< of the name, the number, and the order of a text's sentences
    std::string text{};       ///< the haystack's sentences, in drawn order, again and again; empty: RULER's noise
};

/// @throws UsageError for a length that holds no sentence beside the needle, or a depth outside [0, 1].
NeedlePrompt make_needle(const checkpoint::Tokenizer& tokenizer, const NeedleOptions& options);

/// That needles of these lengths fit in a model, before texts of that length are written.
/// @throws UsageError
void require_lengths(std::span<const int64_t> lengths, int64_t n_new, int64_t context_length);

/// RULER's string_match_all: 1 where the answer stands in the prediction.
double string_match(std::string_view prediction, std::string_view answer);

}  // namespace kvscope::engine
