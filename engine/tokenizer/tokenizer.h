#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {

struct Encoding {
    std::vector<int32_t> ids;
    /// Offset after the last character that each token covers, even partly; 0 for tokens without text, such as BOS.
    std::vector<uint32_t> ends;

    /// Returns the first token with a character at or after `byte`, or the number of tokens.
    [[nodiscard]] size_t first_token_from(size_t byte) const;
};

/// A model's tokenizer with the tokens of llama.cpp (GGUF) or `tokenizers` (tokenizer.json). Immutable and thread-safe.
/// A tokenizer.json can make any call slow. Such a call throws Stopped after a stop request.
class Tokenizer {
 public:
    virtual ~Tokenizer() = default;

    /// @param add_special adds tokens such as BOS. Use false for text that a chat template wrote.
    /// @param parse_special recognizes special tokens in the text (<|im_start|>)
    /// @throws std::invalid_argument if `utf8` is not UTF-8
    std::vector<int32_t> encode(std::string_view utf8, bool add_special, bool parse_special,
                                const std::stop_token& stop = {}) const {
        return tokenize(utf8, add_special, parse_special, nullptr, stop);
    }

    /// Like encode(), with the ends of the tokens. The text may have up to 4 GiB.
    Encoding encode_with_ends(std::string_view utf8, bool add_special, bool parse_special,
                              const std::stop_token& stop = {}) const;

    /// Returns valid UTF-8, with U+FFFD for invalid bytes. @throws std::invalid_argument if an id is not in the
    /// vocabulary
    virtual std::string decode(std::span<const int32_t> ids, bool skip_special = false,
                               const std::stop_token& stop = {}) const = 0;

    /// Returns a token's bytes in the middle of a text; empty for unused ids. The bytes may be a part of a character.
    /// @throws std::invalid_argument if `id` is not in [0, vocab_size)
    [[nodiscard]] virtual std::string piece(int32_t id, const std::stop_token& stop = {}) const = 0;

    /// Returns the piece as valid UTF-8 for display. Writes bytes of incomplete and control characters as ⟨E2⟩.
    std::string shown(int32_t id, const std::stop_token& stop = {}) const;

    /// Returns the highest id plus one.
    [[nodiscard]] virtual int64_t vocab_size() const = 0;

    [[nodiscard]] virtual bool is_special(int32_t id) const = 0;

    [[nodiscard]] virtual std::optional<int32_t> id_of(std::string_view token) const = 0;

    [[nodiscard]] virtual std::optional<int32_t> bos() const = 0;
    [[nodiscard]] virtual std::optional<int32_t> eos() const = 0;

    /// Returns the ids that end generation in ascending order.
    [[nodiscard]] virtual std::span<const int32_t> end_of_generation() const = 0;

    [[nodiscard]] virtual std::string description() const = 0;

 protected:
    /// @throws std::invalid_argument if the id is not in the vocabulary
    void require_id(int32_t id) const;

    [[nodiscard]] virtual std::vector<int32_t> tokenize(std::string_view utf8, bool add_special, bool parse_special,
                                                        std::vector<uint32_t>* ends,
                                                        const std::stop_token& stop) const = 0;

    /// Returns the end of each byte's character.
    [[nodiscard]] static std::vector<uint32_t> ends_of_characters(std::string_view utf8);
};

/// Opens the tokenizer of a GGUF file or a directory. A .safetensors or tokenizer.json file stands for its directory.
/// @throws CheckpointError with the file and the error; Stopped
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& model, const std::stop_token& stop = {});

}  // namespace kvscope::checkpoint
