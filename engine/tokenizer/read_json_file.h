#pragma once

#include <filesystem>

#include "common/json.h"

namespace kvscope::checkpoint {

/// @throws CheckpointError with the position of the error if the file is not a JSON object
[[nodiscard]] nlohmann::json read_json_file(const std::filesystem::path& file);

/// Like read_json_file(), with the fields of objects in their original order.
[[nodiscard]] nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
