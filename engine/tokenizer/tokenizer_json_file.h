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

/// The same with the fields of objects in the file's order.
nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
