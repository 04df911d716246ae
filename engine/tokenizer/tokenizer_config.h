#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer_added_tokens.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// A token named in a file other than tokenizer.json.
struct NamedToken {
    AddedToken token;            ///< id -1 means the vocabulary's id of the text, or else the next free id
    std::filesystem::path file;  ///< its file, for messages
    /// Whether its flags replace those in tokenizer.json. If not, it counts only if tokenizer.json lacks it.
    bool replaces = false;
};

/// Tokens in tokenizer_config.json, special_tokens_map.json and added_tokens.json, merged as in transformers 5: the
/// latter two files count only if tokenizer_config.json has no added_tokens_decoder.
struct TokenizerConfig {
    std::map<std::string, std::string> special_tokens;  ///< special tokens by name: bos_token, eos_token, …
    std::vector<NamedToken> tokens;                     ///< in the order of addition
    nlohmann::json whole = nlohmann::json::object();    ///< contents of tokenizer_config.json

    static TokenizerConfig read(const std::filesystem::path& directory);
};

/// Returns a token's content and flags with the defaults of `tokenizers`, but not its id.
AddedToken read_token_flags(const JsonNode& node);

}  // namespace kvscope::checkpoint
