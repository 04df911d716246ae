#pragma once

#include <filesystem>

namespace kvscope::program {

/// Returns the Hugging Face hub's download cache: HF_HUB_CACHE, else HF_HOME/hub, else a folder in the user's cache.
[[nodiscard]] std::filesystem::path hub_cache();

/// Returns the path of a model. @param named empty for the default model, a path, or "organization/name[/file.gguf]" in
/// the hub's cache @throws std::runtime_error for an id that is not in the cache
[[nodiscard]] std::filesystem::path find_model(const std::filesystem::path& named);

}  // namespace kvscope::program
