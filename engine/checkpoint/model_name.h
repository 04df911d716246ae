#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// What a GGUF file's model is called: by its metadata's `general.name`, as long as every word of that is in the file's
/// name, too ("SmolLM2 135M Instruct" of SmolLM2-135M-Instruct-Q8_0.gguf). A name with other words is what somebody
/// called a training run or a conversion ("Smollm2 135M 8k Lc100K Mix1 Ep2"); then the file's name stands, by which the
/// person knows the model. Where that says nothing (model.gguf, ggml-model-q4_0.gguf), the metadata's does after all.
std::string name_of_gguf(const std::filesystem::path& file, std::string_view metadata_name);

/// What a Hugging Face directory's model is called: by the folder; a snapshot in the hub's cache, whose folder is a
/// commit, by the repository.
std::string name_of_directory(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
