#pragma once

#include <filesystem>
#include <string>

#include "common/json.h"

namespace kvscope::checkpoint {

/// @throws CheckpointError if the file cannot be read or is larger than 1 GiB
[[nodiscard]] std::string read_text_file(const std::filesystem::path& file);

/// @throws CheckpointError with the position of the error if the file is not a JSON object
[[nodiscard]] nlohmann::json read_json_file(const std::filesystem::path& file);

/// Like read_json_file(), with the fields of objects in their original order.
[[nodiscard]] nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
