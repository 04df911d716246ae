#pragma once

#include <optional>
#include <string_view>

#include "common/json.h"

namespace kvscope::engine {

/// Reads a Python literal, as eval() does: texts, numbers, True, False, None, lists, tuples, dicts and sets. Tuples and
/// sets become arrays. Entries of dicts whose keys are no texts are omitted. Returns nullopt for all other text, also
/// for other expressions, bytes, and names of characters in escapes (\N).
[[nodiscard]] std::optional<nlohmann::json> read_python_literal(std::string_view text);

}  // namespace kvscope::engine
