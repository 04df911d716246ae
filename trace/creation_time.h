#pragma once

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::trace {

/// Parses the attribute `created_utc`. Returns nullopt if the text is not a valid time.
std::optional<std::time_t> time_of_utc(const std::string& text);

/// Returns an output's `created_utc` from its .part folder, else from the file, or nullopt if neither is readable.
std::optional<std::time_t> creation_time(const std::filesystem::path& output);

}  // namespace kvscope::trace
