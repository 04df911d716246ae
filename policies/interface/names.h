#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope::policies {

/// Whether two names are equal, ignoring case and the difference between '_' and '-'.
bool same_name(std::string_view a, std::string_view b);

/// Returns the edit distance of two names under the rules of same_name(): insertions, deletions, replacements, swapped
/// neighbors.
int name_distance(std::string_view a, std::string_view b);

/// Returns at most three candidates similar to the name, nearest first. Candidates that contain the name or are
/// contained in it also count as similar.
std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& candidates);

/// Returns " Did you mean a or b?" with a leading space, or an empty text if no candidate is similar.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

/// Returns "a, b, c".
std::string joined(const std::vector<std::string>& names);

}  // namespace kvscope::policies
