#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/checkpoint_error.h"
#include "engine/tokenizer/classifier/aligned_normalizer.h"
#include "engine/tokenizer/classifier/aligned_pretokenizer.h"
#include "engine/tokenizer/classifier/word_model.h"
#include "engine/tokenizer/tokenizer_post_processor.h"

namespace kvscope::checkpoint {

/// Tokenizer of a token classifier (tokenizer.json with WordPiece or Unigram). Immutable and thread-safe.
class ClassifierTokenizer {
 public:
    explicit ClassifierTokenizer(const std::filesystem::path& directory);

    /// Returns a text's tokens without surrounding special tokens. Special tokens in the text are ordinary text.
    /// @throws std::invalid_argument for invalid UTF-8; CheckpointError beyond TokenizerLimits; Stopped
    std::vector<TextToken> encode(std::string_view utf8, const std::stop_token& stop = {}) const;

    [[nodiscard]] std::span<const int32_t> before() const { return surrounding_.before; }
    [[nodiscard]] std::span<const int32_t> after() const { return surrounding_.after; }

    [[nodiscard]] const std::string& spelling(int32_t id) const {
        return model_->spellings().at(static_cast<size_t>(id));
    }
    bool continues_word(int32_t id) const { return model_->continues_word(id); }
    [[nodiscard]] int64_t vocab_size() const { return static_cast<int64_t>(model_->spellings().size()); }

 private:
    void read(const JsonNode& root);

    std::filesystem::path file_;
    AlignedNormalizer normalizer_;
    AlignedPreTokenizer pre_tokenizer_;
    std::unique_ptr<WordModel> model_;
    Surrounding surrounding_;
};

}  // namespace kvscope::checkpoint
