#pragma once

#include <filesystem>

#include "app/cli/table_format_option.h"

namespace kvscope::cli {

[[nodiscard]] bool is_echo_maps_file(const std::filesystem::path& path);

[[nodiscard]] int inspect_echo_maps(const std::filesystem::path& path, const OutputFormat& format);

}  // namespace kvscope::cli
