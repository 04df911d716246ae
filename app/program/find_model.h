#pragma once

#include <filesystem>

namespace kvscope::program {

/// Returns the Hugging Face hub's download cache: HF_HUB_CACHE, else HF_HOME/hub, else a folder in the user's cache.
std::filesystem::path hub_cache();

/// Returns the path of a model: of the default model if `named` is empty, of an existing path, or of an id in the hub's
/// cache ("organization/name[/file.gguf]"). @throws std::runtime_error with download advice if the id is not in the
/// cache
std::filesystem::path find_model(const std::filesystem::path& named);

}  // namespace kvscope::program
