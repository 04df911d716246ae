#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "engine/classifier/encoder.h"
#include "engine/classifier/windows.h"
#include "engine/common/progress.h"
#include "engine/tokenizer/classifier_tokenizer.h"
#include "policies/interface/token_classification.h"

namespace kvscope::engine {

/// LLMLingua-2's classifier of tokens into those to keep and those to drop (Pan et al. 2024, arXiv:2403.12968).
class TokenClassifier {
 public:
    /// @throws checkpoint::CheckpointError for a directory that cannot be used; Cancelled.
    TokenClassifier(const std::filesystem::path& directory, Progress& progress);

    const checkpoint::ClassifierTokenizer& tokenizer() const { return tokenizer_; }
    const Encoder& encoder() const { return encoder_; }

    /// The windows in which a text's tokens are read.
    std::vector<Window> windows(std::span<const checkpoint::TextToken> tokens) const;

    /// For each byte of a text the probability that the word it is in is kept: the mean over the word's tokens (or its
    /// first token's), 1 within `force_tokens`. A space has that of the word behind it; NaN where no word is, as in
    /// line breaks.
    /// @throws std::invalid_argument for a text that is not UTF-8; Cancelled.
    std::vector<float> byte_probabilities(std::string_view text, const policies::TokenClassification& how,
                                          Progress& progress) const;

 private:
    TokenClassifier(const std::filesystem::path& directory, checkpoint::ClassifierConfig config, Progress& progress);

    /// P(keep) of each token of a window.
    std::vector<double> read(std::span<const checkpoint::TextToken> tokens) const;

    checkpoint::ClassifierTokenizer tokenizer_;
    Encoder encoder_;
};

/// The mean over the bytes of [begin, end) that have a probability; 0 where none has.
float mean_probability(std::span<const float> of_bytes, size_t begin, size_t end);

}  // namespace kvscope::engine
