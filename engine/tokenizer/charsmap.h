#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::checkpoint {

/// SentencePiece's compiled normalization rules (`precompiled_charsmap`): a double-array trie over the UTF-8 of
/// replaced texts. Its leaves are offsets into the replacements.
class Charsmap {
 public:
    /// @param blob trie length in bytes (u32, little endian), trie units (u32), zero-terminated replacements
    /// @throws std::runtime_error if the blob is truncated
    explicit Charsmap(std::string_view blob);

    /// Returns the replacement of the shortest rule that `text` starts with, or nullopt.
    std::optional<std::string_view> find(std::string_view text) const;

 private:
    std::vector<uint32_t> units_;
    std::string replacements_;
};

/// @throws std::runtime_error if a character is not base64
std::string decode_base64(std::string_view text);

}  // namespace kvscope::checkpoint
