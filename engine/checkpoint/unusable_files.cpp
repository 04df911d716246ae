#include "engine/checkpoint/unusable_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/files/checkpoint_error.h"
#include "engine/files/json_fields.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Found {
    std::vector<std::string> gguf, shards, variants, consolidated, pickled, safetensors;
    bool has_adapter = false;
};

bool is_shard(std::string_view name) {
    constexpr std::string_view form = "model-#####-of-#####.safetensors";
    return name.size() == form.size() && std::equal(name.begin(), name.end(), form.begin(), [](char c, char f) {
               return f == '#' ? c >= '0' && c <= '9' : c == f;
           });
}

Found found_in(const fs::path& directory) {
    Found found;
    for (const auto& entry : fs::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        const std::string extension = entry.path().extension().string();
        if (name == "adapter_config.json") found.has_adapter = true;
        if (name.starts_with("consolidated.") && (extension == ".safetensors" || extension == ".pth")) {
            found.consolidated.push_back(name);
        } else if (extension == ".gguf") {
            found.gguf.push_back(name);
        } else if (extension == ".bin" || extension == ".pt" || extension == ".pth") {
            found.pickled.push_back(name);
        } else if (extension == ".safetensors") {
            (is_shard(name)                                             ? found.shards
             : name.starts_with("model.") || name.starts_with("model-") ? found.variants
                                                                        : found.safetensors)
                .push_back(name);
        }
    }
    for (auto* list :
         {&found.gguf, &found.shards, &found.variants, &found.consolidated, &found.pickled, &found.safetensors})
        std::sort(list->begin(), list->end());
    return found;
}

std::string text_of_adapter(const fs::path& directory) {
    const fs::path file = directory / "adapter_config.json";
    std::string base;
    if (fs::exists(file)) {
        const auto json = JsonFields::parse_file(file);
        base = JsonFields(json, file).text("base_model_name_or_path").value_or("");
    }
    return fmt::format(
        "a LoRA adapter{}, expected a whole model. Merge it into its model: python -c \"from peft import "
        "AutoPeftModelForCausalLM as M; M.from_pretrained('{}').merge_and_unload().save_pretrained('NEW-FOLDER')\", "
        "and copy the tokenizer's files",
        base.empty() ? "" : fmt::format(" (adapter_config.json) for the model {}", base), directory.string());
}

constexpr std::string_view text_of_consolidated =
    "weights in the model authors' format, expected transformers' format (model.safetensors). Download the "
    "repository's other files, or convert the weights with transformers' script convert_*_weights_to_hf.py";

std::string repository_of(const fs::path& path) {
    constexpr std::string_view prefix = "models--";
    for (const fs::path& part : path) {
        std::string name = part.string();
        if (!name.starts_with(prefix)) continue;
        name.erase(0, prefix.size());
        if (const size_t between = name.find("--"); between != std::string::npos) name.replace(between, 2, "/");
        return name;
    }
    return {};
}

std::string other_form(const fs::path& directory, const Found& found) {
    if (found.has_adapter) return "holds " + text_of_adapter(directory);
    if (!found.consolidated.empty())
        return fmt::format("holds {}: {}", found.consolidated.front(), text_of_consolidated);
    if (!found.gguf.empty()) return fmt::format("holds {}: give that file's path", found.gguf.front());
    return {};
}

}  // namespace

void refuse_dangling_link(const fs::path& path) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(path, error)) || fs::exists(path, error)) return;
    const std::string repository = repository_of(fs::absolute(path, error));
    throw CheckpointError(
        path, fmt::format("is a link to {}, which does not exist: {}", fs::read_symlink(path, error).string(),
                          repository.empty() ? "restore the file, or remove the link"
                                             : fmt::format("download it again with `hf download {}`", repository)));
}

void refuse_dangling_links(const fs::path& directory) {
    for (const char* name :
         {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
          "added_tokens.json", "chat_template.jinja", "chat_template.json"})
        refuse_dangling_link(directory / name);
}

void report_no_config(const fs::path& directory) {
    const Found found = found_in(directory);
    if (const std::string other = other_form(directory, found); !other.empty())
        throw CheckpointError(directory, "has no config.json, but " + other);
    throw CheckpointError(directory, "has no config.json; expected a Hugging Face directory or a GGUF file");
}

void report_no_weights(const fs::path& directory) {
    const Found found = found_in(directory);
    const std::string missing = "has neither model.safetensors nor model.safetensors.index.json";
    std::string what;
    if (!found.shards.empty()) {
        throw CheckpointError(
            directory,
            fmt::format("holds {} as {} of the shards, but no model.safetensors.index.json, which lists the shard of "
                        "each tensor. Download that file, too",
                        found.shards.front(), found.shards.size() == 1 ? "one" : std::to_string(found.shards.size())));
    }
    if (const std::string other = other_form(directory, found); !other.empty()) {
        what = ", but " + other;
    } else if (!found.variants.empty()) {
        what = found.variants.size() == 1
                   ? fmt::format(", but the variant {}: give that file's path", found.variants.front())
                   : fmt::format(
                         ", but {} files of a variant, such as {}: download the weights without a variant, or rename "
                         "the files and their index accordingly",
                         found.variants.size(), found.variants.front());
    } else if (!found.safetensors.empty()) {
        what = fmt::format(", but {}: give that file's path, if it holds the whole model", found.safetensors.front());
    } else if (!found.pickled.empty()) {
        what = ", only PyTorch's pickled weights (" + found.pickled.front() +
               "), which can run code when they are read. Convert them: python -c \"from transformers import "
               "AutoModelForCausalLM as M; M.from_pretrained('" +
               directory.string() +
               "', torch_dtype='auto').save_pretrained('NEW-FOLDER')\", and copy the tokenizer's files";
    } else {
        what = "; expected a Hugging Face directory with config.json and safetensors weights";
    }
    throw CheckpointError(directory, missing + what);
}

std::string advice_on_unsuitable_weights(const std::function<bool(std::string_view)>& has, const fs::path& file) {
    if (file.filename().string().starts_with("adapter_")) return "is " + text_of_adapter(file.parent_path());
    if (has("tok_embeddings.weight")) return "holds " + std::string(text_of_consolidated);
    return {};
}

}  // namespace kvscope::checkpoint
