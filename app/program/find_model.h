#pragma once

#include <filesystem>

namespace kvscope::program {

/// Returns the download cache of the Hugging Face hub: HF_HUB_CACHE, else `hub` in HF_HOME, else huggingface/hub in the
/// user's cache folder.
std::filesystem::path hub_cache();

/// Returns the path of a model named by the user. Nothing is downloaded.
/// @param named empty for the default model; an existing path, which is returned unchanged; "organisation/name" for a
///        repository in the hub's cache at its `main` revision; "organisation/name/file.gguf" for one file of it
/// @throws std::runtime_error for an id that is not in the cache, with the searched folder and how to download the
/// model
std::filesystem::path find_model(const std::filesystem::path& named);

}  // namespace kvscope::program
