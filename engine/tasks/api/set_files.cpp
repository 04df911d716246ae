#include "engine/tasks/api/set_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "common/split.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "policies/registry/name_matching.h"

namespace kvscope::engine {
namespace {

constexpr std::string_view all_sets = "all";

/// Returns the indices of the sets that `subsets` names.
std::vector<size_t> wanted_sets(const std::string& list, std::span<const std::string_view> sets) {
    std::vector<size_t> wanted;
    for (const std::string_view name : split(list, ',')) {
        if (name == all_sets) {
            wanted.resize(sets.size());
            std::iota(wanted.begin(), wanted.end(), size_t{0});
            return wanted;
        }
        const auto found = std::ranges::find(sets, name);
        const std::vector<std::string> names(sets.begin(), sets.end());
        if (found == sets.end())
            throw UsageError(fmt::format("--subsets: found the unknown set '{}'.{} Sets: {}", name,
                                         policies::did_you_mean(name, names), policies::joined(names)));
        wanted.push_back(static_cast<size_t>(found - sets.begin()));
    }
    return wanted;
}

}  // namespace

std::vector<SetFile> files_of_sets(const SampleRequest& request, std::span<const std::string_view> sets) {
    const auto& files = request.options.files;
    const std::string path = request.options.values.text("file");
    const std::string& subsets = request.options.values.text("subsets");
    const auto wanted = wanted_sets(subsets, sets);
    if (const auto one = files.find("file"); one != files.end()) {
        SetFile file{path, utf8_lossy(std::filesystem::path(path).stem().string()), one->second};
        const auto named = std::ranges::find(sets, std::string_view(file.stem));
        if (named == sets.end() && wanted.size() != 1)
            throw UsageError(
                fmt::format("{}: expected a file with the name of a set, such as {}.jsonl: rename the file, or name "
                            "its set with --subsets",
                            path, sets.front()));
        file.set = wanted.size() == 1 ? wanted.front() : static_cast<size_t>(named - sets.begin());
        return {std::move(file)};
    }
    std::vector<SetFile> found;
    for (size_t set = 0; set < sets.size(); ++set) {
        const std::string stem(sets[set]);
        const auto file = files.find("file/" + stem + ".jsonl");
        const bool is_wanted = std::ranges::find(wanted, set) != wanted.end();
        if (is_wanted && file != files.end())
            found.push_back({fmt::format("{}/{}.jsonl", path, stem), stem, file->second, set, static_cast<int>(set),
                             static_cast<int>(sets.size())});
        else if (is_wanted && wanted.size() < sets.size())
            throw UsageError(fmt::format("--subsets {}: {} contains no file {}.jsonl", subsets, path, stem));
    }
    if (found.empty())
        throw UsageError(fmt::format("{}: expected files such as {}.jsonl, found none: name the folder of these files",
                                     path, sets.front()));
    return found;
}

policies::Parameter subsets_parameter(std::span<const std::string_view> sets) {
    return policies::text_parameter("subsets", std::string(all_sets),
                                    "Sets, which are names of files without .jsonl: " +
                                        policies::joined(std::vector<std::string>(sets.begin(), sets.end())));
}

std::vector<std::pair<size_t, size_t>> places_of(std::string_view part, std::string_view text) {
    std::vector<std::pair<size_t, size_t>> places;
    if (part.empty()) return places;
    for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
        places.emplace_back(at, at + part.size());
    return places;
}

}  // namespace kvscope::engine
