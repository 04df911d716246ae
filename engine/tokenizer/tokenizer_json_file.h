#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace kvscope::checkpoint {

/// Reads a text file. @throws CheckpointError if it cannot be read or is larger than 1 GiB
std::string read_text_file(const std::filesystem::path& file);

/// Reads a JSON file. @throws CheckpointError with the position of the error if it is not a JSON object
nlohmann::json read_json_file(const std::filesystem::path& file);

/// Like read_json_file(), but keeps the order of fields in objects.
nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
