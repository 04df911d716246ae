#pragma once

#include <filesystem>

namespace kvscope::program {

/// Where the Hugging Face hub's libraries keep what they fetched: HF_HUB_CACHE, else `hub` in HF_HOME, else
/// huggingface/hub in the person's cache folder.
std::filesystem::path hub_cache();

/// What a person named as a model, as a path: the default model where nothing was named; a path that exists, as it is;
/// "organisation/name" as that repository's folder in the hub's cache, at the revision that `main` was when it was
/// fetched, and "organisation/name/file.gguf" as a file in it. Nothing is ever downloaded.
/// @throws std::runtime_error for an id that is not in the cache, saying where it was looked for and how to fetch it
std::filesystem::path find_model(const std::filesystem::path& named);

}  // namespace kvscope::program
