#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/json.h"

namespace kvscope::engine {

/// Returns `str(value)` of a value that Python's json module reads: a text as it is, and lists, numbers and constants
/// as Python writes them.
[[nodiscard]] std::string python_text_of(const nlohmann::json& value);

/// Returns the format with each "{name}" replaced, as `str.format` does. Inserted texts are not searched for names.
[[nodiscard]] std::string python_format(std::string_view format,
                                        const std::function<std::string(std::string_view name)>& value_of);

}  // namespace kvscope::engine
