#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace kvscope::checkpoint {

/// A whole text file.
/// @throws CheckpointError if it cannot be read or is larger than any tokenizer file is (1 GiB)
std::string read_text_file(const std::filesystem::path& file);

/// @throws CheckpointError saying what is wrong and where if the file is not JSON with an object at its top
nlohmann::json read_json_file(const std::filesystem::path& file);

/// The text of a special token in tokenizer_config.json, written as a string or as an object with "content"; empty if
/// there is none.
std::string special_token_text(const nlohmann::json& tokenizer_config, const char* key);

}  // namespace kvscope::checkpoint
