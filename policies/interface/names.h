#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope::policies {

/// Whether two names are the same to a person: '_' and '-' alike, upper and lower case alike.
bool same_name(std::string_view a, std::string_view b);

/// Edit distance of the names as `same_name` sees them (insertions, deletions, replacements, swapped neighbours).
int name_distance(std::string_view a, std::string_view b);

/// The candidates close enough to be meant (at most three, nearest first); those that contain the name or are contained
/// in it count as close.
std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& candidates);

/// " Did you mean a or b?" (with the leading space), or nothing where no candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

/// "a, b, c"
std::string joined(const std::vector<std::string>& names);

}  // namespace kvscope::policies
