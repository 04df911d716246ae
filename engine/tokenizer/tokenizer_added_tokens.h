#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/tokenizer_pretokenizer.h"

namespace kvscope::checkpoint {

/// An entry of added_tokens: a text that always becomes one token, before the model's rules apply.
struct AddedToken {
    int32_t id = -1;
    std::string content;
    bool single_word = false;  ///< whether the token must not be inside a longer word
    bool lstrip = false;       ///< whether the token includes preceding white space
    bool rstrip = false;       ///< whether the token includes following white space
    bool normalized = false;   ///< whether to search the normalized text instead of the original
    bool special = false;
};

/// Finds added tokens in a text. The leftmost token comes first, and the longest wins at each position.
class AddedTokenFinder {
 public:
    /// @param pattern text to search for: the token's content or its normalized form
    void add(const AddedToken& token, std::string_view pattern);

    /// Cuts `piece` at added tokens and appends the parts. Without `parse_special`, special tokens are ordinary text.
    void cut(const Piece& piece, bool parse_special, std::vector<Piece>& out, TokenizerLimits& limits) const;

 private:
    struct Node {
        int32_t token = -1;  // index into tokens_ of the pattern that ends here
    };
    [[nodiscard]] static uint64_t edge(uint32_t node, char byte) {
        return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
    }

    std::vector<AddedToken> tokens_;
    std::vector<Node> nodes_{Node{}};
    std::unordered_map<uint64_t, uint32_t> edges_;
    std::array<bool, 256> starts_{};
};

}  // namespace kvscope::checkpoint
