#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tasks/api/task.h"

namespace kvscope::engine {

/// A file of a benchmark that has one file per set, such as passkey.jsonl.
struct SetFile {
    std::string shown;  ///< path, for messages
    std::string stem;
    std::string_view text;
    size_t set = 0;  ///< index in the list of sets

    /// Returns TaskSample::number of the sample with this number in the file, from 1.
    [[nodiscard]] int number_of_sample(int number) const { return (number - 1) * n_places + place; }

    int place = 0, n_places = 1;  ///< of the set among all sets, if the user named a folder
};

/// Returns the wanted files: the file that the user named with `file`, whose set is its name or the only one in the
/// parameter `subsets`; or the files of a folder that are named after sets in `subsets` ("all": after any set).
/// @throws UsageError for unknown and missing sets
[[nodiscard]] std::vector<SetFile> files_of_sets(const SampleRequest& request, std::span<const std::string_view> sets);

/// The parameter `subsets` of files_of_sets().
[[nodiscard]] policies::Parameter subsets_parameter(std::span<const std::string_view> sets);

/// Returns begin and end of all occurrences of `part`, which do not overlap.
[[nodiscard]] std::vector<std::pair<size_t, size_t>> places_of(std::string_view part, std::string_view text);

}  // namespace kvscope::engine
