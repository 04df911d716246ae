#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

// Messages about files that are not the expected model, and how to obtain it.

/// @throws CheckpointError if the path is a link to a missing file, as the hub's cache keeps it after the file was
///         removed
void refuse_dangling_link(const std::filesystem::path& path);

/// Like refuse_dangling_link(), for the configuration and tokenizer files of a model's directory.
void refuse_dangling_links(const std::filesystem::path& directory);

/// @throws CheckpointError for a directory without config.json
[[noreturn]] void report_no_config(const std::filesystem::path& directory);

/// @throws CheckpointError for a directory with config.json, but without model.safetensors or its index
[[noreturn]] void report_no_weights(const std::filesystem::path& directory);

/// Returns a description of an unsuitable weight file, judged by its tensor names, and how to convert it. Empty if
/// nothing is known.
/// @param has whether a tensor exists
std::string foreign_weights(const std::function<bool(std::string_view)>& has, const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
