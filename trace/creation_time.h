#pragma once

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::trace {

/// A `created_utc` as a time; nothing where the text is none.
std::optional<std::time_t> time_of_utc(const std::string& text);

/// The `created_utc` of what a writer of this output goes on with: of the .part folder, else of the file. Nothing where
/// neither is a trace that can be read.
std::optional<std::time_t> creation_time(const std::filesystem::path& output);

}  // namespace kvscope::trace
