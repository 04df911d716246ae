#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::checkpoint {

/// SentencePiece's compiled normalisation rules (`precompiled_charsmap`): a double-array trie over the UTF-8 of what is
/// replaced, whose leaves are offsets into the replacements.
class Charsmap {
 public:
    /// @param blob length of the trie in bytes (u32, little endian), the trie's units (u32), replacements that end in a
    ///             zero byte
    /// @throws std::runtime_error if it is cut off
    explicit Charsmap(std::string_view blob);

    /// What replaces the shortest rule that `text` begins with; nothing if there is none.
    std::optional<std::string_view> find(std::string_view text) const;

 private:
    std::vector<uint32_t> units_;
    std::string replacements_;
};

/// @throws std::runtime_error for other characters than base64's
std::string decode_base64(std::string_view text);

}  // namespace kvscope::checkpoint
