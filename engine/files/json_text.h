#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace kvscope::checkpoint {

/// Parses JSON with NaN and Infinity, as Python does. Nesting is limited to 256 levels, because the library is
/// recursive.
/// @throws std::runtime_error that names the error and its byte offset
nlohmann::json parse_json(std::string_view text);

/// Like parse_json(), but keeps the order of fields in objects.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace kvscope::checkpoint
