#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace kvscope::program {

/// Returns the path in KVSCOPE_DEFAULT_MODEL, otherwise the installed model or the model that the build fetched.
/// @throws std::runtime_error if no model is found
[[nodiscard]] std::filesystem::path default_model();

/// Returns a file of assets/, installed or in the source tree. @throws std::runtime_error if the file is missing
[[nodiscard]] std::filesystem::path asset_path(const std::string& name);

/// Returns the path of an installed file for "assets/NAME", and any other text unchanged. @throws as asset_path()
[[nodiscard]] std::string with_asset_path(const std::string& text);

inline constexpr size_t largest_prompt = size_t{256} << 20;  ///< in bytes

/// Reads a whole text file; "-" is standard input. @throws std::runtime_error if it is unreadable or exceeds `largest`
/// bytes
[[nodiscard]] std::string read_text(const std::filesystem::path& path, size_t largest = largest_prompt);

/// Reads a file with one prompt. @throws as read_text; std::runtime_error for files of JSON records (.jsonl, .ndjson)
[[nodiscard]] std::string read_prompt(const std::filesystem::path& path);

[[nodiscard]] std::string display_name_of_input(const std::filesystem::path& path);

}  // namespace kvscope::program
