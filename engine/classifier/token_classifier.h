#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "engine/classifier/encoder.h"
#include "engine/common/progress.h"
#include "engine/tokenizer/classifier/classifier_tokenizer.h"
#include "policies/api/further_interfaces.h"

namespace kvscope::engine {

/// Tokens [begin, end) that an encoder reads together.
struct Window {
    size_t begin = 0, end = 0;
    [[nodiscard]] bool operator==(const Window&) const = default;
};

/// LLMLingua-2's token classifier (Pan et al. 2024, arXiv:2403.12968).
class TokenClassifier {
 public:
    /// @throws checkpoint::CheckpointError if the directory cannot be used; Stopped
    TokenClassifier(const std::filesystem::path& directory, Progress& progress);

    [[nodiscard]] const checkpoint::ClassifierTokenizer& tokenizer() const { return tokenizer_; }
    [[nodiscard]] const Encoder& encoder() const { return encoder_; }

    /// Cuts tokens into windows that the encoder can read, if possible after a full stop or line break, else before a
    /// word.
    [[nodiscard]] std::vector<Window> windows(std::span<const checkpoint::TextToken> tokens) const;

    /// Returns for each byte the probability that its word is kept: the mean over the word's tokens or the probability
    /// of the first token. Texts in `force_tokens` have 1. A space belongs to the next word. Other bytes have NaN.
    /// @throws std::invalid_argument if the text is not UTF-8; Stopped
    [[nodiscard]] std::vector<float> byte_probabilities(std::string_view text,
                                                        const policies::TokenClassifierSettings& how,
                                                        Progress& progress) const;

 private:
    TokenClassifier(const std::filesystem::path& directory, checkpoint::ClassifierConfig config, Progress& progress);

    [[nodiscard]] std::vector<double> read(std::span<const checkpoint::TextToken> tokens) const;

    checkpoint::ClassifierTokenizer tokenizer_;
    Encoder encoder_;
};

/// Returns the mean over the bytes in [begin, end) that have a probability; 0 if there are none.
[[nodiscard]] float mean_byte_probability(std::span<const float> of_bytes, size_t begin, size_t end);

}  // namespace kvscope::engine
