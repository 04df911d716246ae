#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// Returns the name of a GGUF file's model: `general.name` from the metadata, if all of its words occur in the file's
/// name ("SmolLM2 135M Instruct" for SmolLM2-135M-Instruct-Q8_0.gguf). Otherwise, `general.name` often names a training
/// run ("Smollm2 135M 8k Lc100K Mix1 Ep2"), and the file's name is used. Generic file names (model.gguf,
/// ggml-model-q4_0.gguf) fall back to the metadata.
std::string name_of_gguf(const std::filesystem::path& file, std::string_view metadata_name);

/// Returns the name of a Hugging Face directory's model: the folder's name or, for a snapshot in the hub's cache, the
/// repository's.
std::string name_of_directory(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
