#pragma once

#include <filesystem>

#include "app/cli/table_format_option.h"

namespace kvscope::cli {

bool is_maps(const std::filesystem::path& path);

int inspect_maps(const std::filesystem::path& path, const OutputFormat& format);

}  // namespace kvscope::cli
