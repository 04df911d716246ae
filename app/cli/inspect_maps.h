#pragma once

#include <filesystem>

#include "app/cli/output_option.h"

namespace kvscope::cli {

/// Whether a file is a safetensors file with EchoKV maps, according to its metadata.
bool is_maps(const std::filesystem::path& path);

/// Prints the facts about a file of EchoKV maps: model, stored numbers, training. @returns 0
/// @throws policies::EchoMapsError for a damaged file
int inspect_maps(const std::filesystem::path& path, const OutputFormat& format);

}  // namespace kvscope::cli
