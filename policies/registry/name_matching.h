#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope::policies {

/// Whether two names are equal. Ignores case and treats '_' like '-'.
[[nodiscard]] bool same_name(std::string_view a, std::string_view b);

/// Returns the edit distance between names (insertions, deletions, replacements, swaps), compared as in same_name().
[[nodiscard]] int name_distance(std::string_view a, std::string_view b);

/// Returns up to three similar candidates, nearest first. Candidates that contain `name` or are part of it are similar.
[[nodiscard]] std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& candidates);

/// Returns " Did you mean a or b?" with a leading space, or an empty text if no candidate is similar.
[[nodiscard]] std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

[[nodiscard]] std::string joined(const std::vector<std::string>& names);

}  // namespace kvscope::policies
