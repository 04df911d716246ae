#pragma once

#include <filesystem>

namespace kvscope::program {

/// Returns the download cache of the Hugging Face hub: HF_HUB_CACHE, else HF_HOME/hub, else one in the user's cache.
std::filesystem::path hub_cache();

/// Returns the path of a model named by the user. Nothing is downloaded.
/// @param named empty for the default model, an existing path, or "organization/name[/file.gguf]" in the hub's cache
/// @throws std::runtime_error for an id that is not in the cache; the message says how to download it
std::filesystem::path find_model(const std::filesystem::path& named);

}  // namespace kvscope::program
