#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer_added_tokens.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

struct NamedToken {
    AddedToken token;            ///< id -1 stands for the vocabulary's id of the text or else the next free id
    std::filesystem::path file;  ///< file that names the token, for messages
    /// Whether the flags replace the flags in tokenizer.json. If false, a token in tokenizer.json stays as it is.
    bool replaces = false;
};

/// Tokens outside tokenizer.json. As in transformers 5, tokenizer_config.json with added_tokens_decoder replaces
/// special_tokens_map.json and added_tokens.json.
struct TokenizerConfig {
    std::map<std::string, std::string> special_tokens;  ///< special tokens by name: bos_token, eos_token, …
    std::vector<NamedToken> tokens;                     ///< in the order in which they are added
    nlohmann::json whole = nlohmann::json::object();    ///< contents of tokenizer_config.json

    [[nodiscard]] static TokenizerConfig read(const std::filesystem::path& directory);
};

/// Returns a token's content and flags, with the defaults of `tokenizers`, but not its id.
[[nodiscard]] AddedToken read_token_flags(const JsonNode& node);

}  // namespace kvscope::checkpoint
