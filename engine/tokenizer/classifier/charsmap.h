#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::checkpoint {

/// SentencePiece's compiled normalization rules (`precompiled_charsmap`): a trie with offsets of replacements.
class Charsmap {
 public:
    /// @param blob trie length in bytes (u32, little endian), trie units (u32), zero-terminated replacements
    explicit Charsmap(std::string_view blob);

    /// Returns the replacement of the shortest rule at the start of `text`, or nullopt.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view text) const;

 private:
    std::vector<uint32_t> units_;
    std::string replacements_;
};

[[nodiscard]] std::string decode_base64(std::string_view text);

}  // namespace kvscope::checkpoint
