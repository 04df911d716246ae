#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

// What stands where a model is expected, and what to do about it: for messages.

/// @throws CheckpointError if the path is a link to a file that is not there, as the hub's cache keeps it when its file
/// is removed
void refuse_dangling_link(const std::filesystem::path& path);

/// The same for the files of a model's directory that say what it is, and those of its tokenizer.
void refuse_dangling_links(const std::filesystem::path& directory);

/// @throws CheckpointError for a directory without config.json
[[noreturn]] void report_no_config(const std::filesystem::path& directory);

/// @throws CheckpointError for a directory with config.json, but neither model.safetensors nor its index
[[noreturn]] void report_no_weights(const std::filesystem::path& directory);

/// What a file with tensors of such names is where it does not fit a model, with what to do; empty: nothing is known.
/// @param has whether there is a tensor of a name
std::string foreign_weights(const std::function<bool(std::string_view)>& has, const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
