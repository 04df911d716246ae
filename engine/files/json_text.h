#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace kvscope::checkpoint {

/// Parses a JSON text of a model's files, with NaN and Infinity as Python's json module writes them. What comes back is
/// nested 256 levels deep at most: the library copies and prints values by recursion.
/// @throws std::runtime_error that says in words for people what is wrong, and at which byte
nlohmann::json parse_json(std::string_view text);

/// The same with the fields of objects in the text's order.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace kvscope::checkpoint
