#pragma once

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::trace {

/// Parses a `created_utc`. Returns nullopt if the text is not such a time.
std::optional<std::time_t> time_of_utc(const std::string& text);

/// Returns the `created_utc` that a writer of this output would continue with: from the .part folder, else from the
/// file. Returns nullopt if neither is a readable trace.
std::optional<std::time_t> creation_time(const std::filesystem::path& output);

}  // namespace kvscope::trace
