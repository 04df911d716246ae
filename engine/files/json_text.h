#pragma once

#include <string_view>

#include "common/json.h"

namespace kvscope::checkpoint {

/// Parses JSON with NaN and Infinity, as Python does. Limits nesting to 256 levels, because the library is recursive.
/// @throws std::runtime_error with the kind and the byte offset of the error
[[nodiscard]] nlohmann::json parse_json(std::string_view text);

/// Like parse_json(), with the fields of objects in their original order.
[[nodiscard]] nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace kvscope::checkpoint
