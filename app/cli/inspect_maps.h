#pragma once

#include <filesystem>

#include "app/cli/output_option.h"

namespace kvscope::cli {

bool is_maps(const std::filesystem::path& path);

/// Prints the facts about a file of EchoKV maps. @throws policies::EchoMapsError for a damaged file
int inspect_maps(const std::filesystem::path& path, const OutputFormat& format);

}  // namespace kvscope::cli
