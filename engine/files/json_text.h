#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "common/json.h"

namespace kvscope::checkpoint {

/// Parses JSON with NaN and Infinity, as Python does. Limits nesting to 256 levels, because the library is recursive.
/// @throws std::runtime_error with the kind and the byte offset of the error
[[nodiscard]] nlohmann::json parse_json(std::string_view text);

/// Parses a file like parse_json(). `Json` may be ordered_json, which keeps the order of fields.
/// @throws CheckpointError with the position of the error, or if the file is not an object of at most `limit` bytes
template <class Json = nlohmann::json>
[[nodiscard]] Json read_json_object(const std::filesystem::path& file, uint64_t limit = uint64_t{1} << 30);

}  // namespace kvscope::checkpoint
