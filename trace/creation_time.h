#pragma once

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::trace {

/// Parses the attribute `created_utc`. Returns nullopt if the text is not a valid time.
[[nodiscard]] std::optional<std::time_t> time_of_utc(const std::string& text);

/// Returns `created_utc` of the output's .part folder or, without a folder, of the output. nullopt if unreadable.
[[nodiscard]] std::optional<std::time_t> creation_time(const std::filesystem::path& output);

}  // namespace kvscope::trace
