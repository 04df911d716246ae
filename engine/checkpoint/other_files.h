#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

// Messages about files that are not the expected model, and how to obtain it.

/// @throws CheckpointError for a link to a missing file, which the hub's cache keeps after the file was removed
void refuse_dangling_link(const std::filesystem::path& path);

void refuse_dangling_links(const std::filesystem::path& directory);

[[noreturn]] void report_no_config(const std::filesystem::path& directory);

[[noreturn]] void report_no_weights(const std::filesystem::path& directory);

/// Returns a description of an unsuitable weight file, judged by its tensor names, with advice. Empty if unknown.
std::string foreign_weights(const std::function<bool(std::string_view)>& has, const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
