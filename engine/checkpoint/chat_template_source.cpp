#include "engine/checkpoint/chat_template_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/checkpoint_error.h"
#include "engine/files/file_reader.h"
#include "engine/files/gguf_file.h"
#include "engine/files/json_text.h"
#include "engine/tokenizer/tokenizer_config.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Templates {
    std::map<std::string, std::string> by_name;
    std::string origin;
};

constexpr const char* default_name = "default";

/// Reads a single template, an object of names and templates, or a list of {"name", "template"}.
Templates templates_in(const nlohmann::json& file_contents, const fs::path& file) {
    Templates out{{}, file.string()};
    with_file_in_errors(file, [&] {
        const auto node = JsonNode(file_contents, "").find("chat_template");
        if (!node) return;
        if (node->json().is_array()) {
            for (size_t i = 0; i < node->size(); ++i)
                out.by_name[(*node)[i].at("name").text()] = (*node)[i].at("template").text();
        } else if (node->json().is_object()) {
            for (const auto& [name, value] : node->json().items()) out.by_name[name] = node->at(name).text();
        } else {
            out.by_name[default_name] = node->text();
        }
    });
    if (out.by_name.size() == 1 && out.by_name.begin()->second.empty()) out.by_name.clear();
    return out;
}

/// Reads chat_template.jinja as the default template, and additional_chat_templates/NAME.jinja.
Templates template_files(const fs::path& directory) {
    Templates out;
    const fs::path folder = directory / "additional_chat_templates";
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.path().extension() == ".jinja") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
        out.by_name[file.stem().string()] = read_text_file(file);
        out.origin = folder.string();
    }
    const fs::path main_file = directory / "chat_template.jinja";
    if (fs::exists(main_file)) {
        out.by_name[default_name] = read_text_file(main_file);
        out.origin = main_file.string();
    }
    return out;
}

std::optional<ChatTemplateSource> choose(const Templates& templates,
                                         std::map<std::string, std::string> special_tokens) {
    if (templates.by_name.empty()) return std::nullopt;
    ChatTemplateSource out{{}, std::move(special_tokens), templates.origin, {}};
    if (const auto found = templates.by_name.find(default_name); found != templates.by_name.end()) {
        out.jinja = found->second;
        return out;
    }
    std::string names;
    for (const auto& [name, text] : templates.by_name) names += (names.empty() ? "" : ", ") + name;
    out.problem = fmt::format(
        "has chat templates named {}, but none named \"{}\". Save the one to use as chat_template.jinja in a Hugging "
        "Face folder, or run without a template (--no-template).",
        names, default_name);
    return out;
}

std::optional<ChatTemplateSource> find_in_directory(const fs::path& directory) {
    TokenizerConfig config = TokenizerConfig::read(directory);
    // As in transformers, template files come first, then tokenizer_config.json, then chat_template.json.
    Templates templates = template_files(directory);
    if (templates.by_name.empty()) templates = templates_in(config.whole, directory / "tokenizer_config.json");
    const fs::path older = directory / "chat_template.json";
    if (templates.by_name.empty() && fs::exists(older)) templates = templates_in(read_json_object(older), older);
    return choose(templates, std::move(config.special_tokens));
}

std::optional<ChatTemplateSource> find_in_gguf(const fs::path& path) {
    const GgufFile file(path);
    const auto text_in = [](const GgufValue& value) { return std::get_if<std::string>(&value); };
    Templates templates{{}, path.string()};
    constexpr std::string_view key_of_templates = "tokenizer.chat_template";
    for (const auto& [key, value] : file.values()) {
        if (!key.starts_with(key_of_templates) || text_in(value) == nullptr || text_in(value)->empty()) continue;
        const std::string name = key.substr(key_of_templates.size());
        if (name.empty() || name.starts_with('.'))
            templates.by_name[name.empty() ? default_name : name.substr(1)] = *text_in(value);
    }
    if (templates.by_name.empty()) return std::nullopt;

    const auto find = [&](const char* key) {
        const auto found = file.values().find(key);
        return found == file.values().end() ? nullptr : &found->second;
    };
    const GgufArray* tokens = file.array("tokenizer.ggml.tokens");
    const GgufValue* model = find("tokenizer.ggml.model");
    const bool sentencepiece = model != nullptr && text_in(*model) != nullptr && *text_in(*model) == "llama";
    constexpr uint64_t none = std::numeric_limits<uint64_t>::max();
    struct Special {
        const char* key;
        const char* variable;
        uint64_t of_sentencepiece;  // llama.cpp's default if the key is missing
    };
    static constexpr std::array<Special, 4> specials{{{"tokenizer.ggml.bos_token_id", "bos_token", 1},
                                                      {"tokenizer.ggml.eos_token_id", "eos_token", 2},
                                                      {"tokenizer.ggml.unknown_token_id", "unk_token", 0},
                                                      {"tokenizer.ggml.padding_token_id", "pad_token", none}}};
    std::map<std::string, std::string> special_tokens;
    for (const Special& special : specials) {
        const GgufValue* value = find(special.key);
        const auto* given = value == nullptr ? nullptr : std::get_if<uint64_t>(value);
        const uint64_t id = given != nullptr ? *given : sentencepiece ? special.of_sentencepiece : none;
        if (tokens != nullptr && id < tokens->texts.size()) special_tokens[special.variable] = tokens->texts[id];
    }
    return choose(templates, std::move(special_tokens));
}

}  // namespace

std::optional<ChatTemplateSource> find_chat_template(const fs::path& model) {
    std::error_code error;
    const fs::file_status status = fs::status(model, error);
    if (!fs::exists(status)) throw CheckpointError(model.string() + " does not exist");
    if (fs::is_directory(status)) return find_in_directory(model);
    const bool in_directory = model.extension() == ".safetensors" || model.filename() == "tokenizer.json";
    return in_directory ? find_in_directory(model.parent_path()) : find_in_gguf(model);
}

}  // namespace kvscope::checkpoint
