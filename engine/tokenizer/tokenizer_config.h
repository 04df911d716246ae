#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer_added_tokens.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// A token that a file beside tokenizer.json names.
struct NamedToken {
    AddedToken token;            ///< id -1: the vocabulary's id of that text, else the next one that is free
    std::filesystem::path file;  ///< for messages
    /// Its flags replace those of a token that tokenizer.json adds; else the token counts where that file has none.
    bool replaces = false;
};

/// What tokenizer_config.json, special_tokens_map.json and added_tokens.json say about tokens, merged as transformers 5
/// merges them: the latter two count where tokenizer_config.json has no added_tokens_decoder.
struct TokenizerConfig {
    std::map<std::string, std::string> special_tokens;  ///< bos_token, eos_token, …: each by its name
    std::vector<NamedToken> tokens;                     ///< in the order in which they are added
    nlohmann::json whole = nlohmann::json::object();    ///< tokenizer_config.json

    /// @throws CheckpointError with the file and the place in it that is wrong
    static TokenizerConfig read(const std::filesystem::path& directory);
};

/// The flags of a token with the defaults of the library `tokenizers`, and its content; the id stays open.
AddedToken read_token_flags(const JsonNode& node);

}  // namespace kvscope::checkpoint
