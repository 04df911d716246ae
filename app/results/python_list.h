#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::results {

/// Returns the elements of a list as Python or NumPy print it: "['a', 'b']", "['a' 'b']" or "[1 2]". Elements of nested
/// lists are elements of the result. Returns nullopt if the text is no such list.
[[nodiscard]] std::optional<std::vector<std::string>> elements_of_list(std::string_view text);

/// Returns the text of a list of strings: `str(list)` with the separator ", ", NumPy's `str(array)` with " ".
[[nodiscard]] std::string list_as_text(std::span<const std::string> elements, std::string_view separator);

}  // namespace kvscope::results
