#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// @throws CheckpointError for a link to a missing file, such as a link in the hub's cache to a removed file
void refuse_dangling_link(const std::filesystem::path& path);

void refuse_dangling_links(const std::filesystem::path& directory);

[[noreturn]] void report_no_config(const std::filesystem::path& directory);

[[noreturn]] void report_no_weights(const std::filesystem::path& directory);

/// Returns advice about unsuitable weights, recognized by tensor names, or an empty text.
[[nodiscard]] std::string advice_on_unsuitable_weights(const std::function<bool(std::string_view)>& has,
                                                       const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
