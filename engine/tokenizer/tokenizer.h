#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {

/// Token ids of a text, and where in it each token ends.
struct Encoding {
    std::vector<int32_t> ids;
    /// Of each token the byte after the last character that it stands for, wholly or in part. A space that the
    /// tokenizer puts in front of a text goes with the first character. 0 for a token that stands for no character, as
    /// BOS.
    std::vector<uint32_t> ends;

    /// The first token that stands for a character at or after `byte`; the number of tokens if none does.
    size_t first_token_from(size_t byte) const;
};

/// A model's tokenizer: text to token ids and back, exactly as its reference does it (llama.cpp for GGUF files, the
/// Hugging Face library `tokenizers` for tokenizer.json). Immutable, safe to use from several threads.
class Tokenizer {
 public:
    virtual ~Tokenizer() = default;

    /// @param add_special   add what the model's own post-processor adds around a text (BOS and the like); off for a
    ///                      text that a chat template rendered, since it writes those tokens itself
    /// @param parse_special read special tokens that stand in the text (<|im_start|>) as those tokens; else their
    ///                      characters are encoded like any others
    /// @throws std::invalid_argument if `utf8` is not UTF-8, with the offset of the first wrong byte
    std::vector<int32_t> encode(std::string_view utf8, bool add_special, bool parse_special) const {
        return tokenize(utf8, add_special, parse_special, nullptr);
    }

    /// As encode(), with the tokens' places in the text, which may be up to 4 GiB long.
    Encoding encode_with_ends(std::string_view utf8, bool add_special, bool parse_special) const;

    /// Always valid UTF-8: bytes that form no character come out as U+FFFD. Spaces stay as they are (llama.cpp and
    /// transformers can be told to take those before punctuation away).
    /// @throws std::invalid_argument if an id is not in [0, vocab_size)
    virtual std::string decode(std::span<const int32_t> ids, bool skip_special = false) const = 0;

    /// The bytes that a token stands for in the middle of a text, possibly only a part of a character; special tokens
    /// as they are spelt. Empty for ids that no token has (padding of the vocabulary).
    /// @throws std::invalid_argument if `id` is not in [0, vocab_size)
    virtual std::string piece(int32_t id) const = 0;

    /// The piece as shown to a person: valid UTF-8 always. Bytes that are no character, and control characters other
    /// than tab, line feed and carriage return, appear as ⟨E2⟩.
    std::string shown(int32_t id) const;

    /// One more than the highest id.
    virtual int64_t vocab_size() const = 0;

    virtual bool is_special(int32_t id) const = 0;

    /// The id of a token given as the vocabulary spells it.
    virtual std::optional<int32_t> id_of(std::string_view token) const = 0;

    virtual std::optional<int32_t> bos() const = 0;
    virtual std::optional<int32_t> eos() const = 0;

    /// Ids at which generation ends, ascending.
    virtual std::span<const int32_t> end_of_generation() const = 0;

    /// For reports: "byte-level BPE (tokenizer.json)", "bpe, pre-tokenizer smollm (GGUF)".
    virtual std::string description() const = 0;

 protected:
    /// @param ends is given `Encoding::ends`; nullptr where nobody asks
    virtual std::vector<int32_t> tokenize(std::string_view utf8, bool add_special, bool parse_special,
                                          std::vector<uint32_t>* ends) const = 0;

    /// Of each byte of a text, where its character ends.
    static std::vector<uint32_t> ends_of_characters(std::string_view utf8);
};

/// Opens the tokenizer of a GGUF file or of a Hugging Face directory (tokenizer.json; tokenizer_config.json,
/// config.json and generation_config.json where they exist). A path to a .safetensors or tokenizer.json file means the
/// directory that it is in.
/// @throws CheckpointError with the file and what is wrong, also for kinds of tokenizers that are not supported
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& model);

/// Turns generated ids into text as they come. The concatenation of all that push() and finish() return is what
/// decode() gives for all ids together.
class StreamDecoder {
 public:
    explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true)
        : tokenizer_(tokenizer), skip_special_(skip_special) {}

    /// The text that became complete with this token; empty while a character is unfinished.
    std::string push(int32_t id);

    /// What is left over, unfinished characters as U+FFFD.
    std::string finish();

 private:
    const Tokenizer& tokenizer_;
    bool skip_special_;
    std::vector<int32_t> ids_;   // from the last place where the text was whole
    size_t emitted_tokens_ = 0;  // of ids_, kept as context since decoders treat the first token differently
};

}  // namespace kvscope::checkpoint
