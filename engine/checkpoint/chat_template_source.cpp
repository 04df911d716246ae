#include "engine/checkpoint/chat_template_source.h"

#include <fmt/format.h>
#include <gguf.h>

#include <array>
#include <limits>
#include <memory>

#include "engine/files/error.h"
#include "engine/tokenizer/tokenizer_gguf.h"
#include "engine/tokenizer/tokenizer_json_file.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

void add_special_tokens(const nlohmann::json& config, std::map<std::string, std::string>& out) {
    for (const auto& [key, value] : config.items()) {
        if (!key.ends_with("_token")) continue;
        if (const std::string text = special_token_text(config, key.c_str()); !text.empty()) out[key] = text;
    }
}

/// "chat_template" is a string, or a list of {"name", "template"} of which "default" is meant.
std::optional<std::string> configured_template(const JsonNode& config) {
    const auto node = config.find("chat_template");
    if (!node) return std::nullopt;
    if (!node->json().is_array()) return node->text().empty() ? std::nullopt : std::optional(node->text());
    for (size_t i = 0; i < node->size(); ++i) {
        if ((*node)[i].at("name").text() == "default") return (*node)[i].at("template").text();
    }
    return std::nullopt;
}

std::optional<ChatTemplateSource> find_in_directory(const fs::path& directory) {
    ChatTemplateSource out;
    std::optional<std::string> configured;
    bool lists_added_tokens = false;
    const fs::path config_file = directory / "tokenizer_config.json";
    if (fs::exists(config_file)) {
        const nlohmann::json config = read_json_file(config_file);
        lists_added_tokens = config.contains("added_tokens_decoder");
        add_special_tokens(config, out.special_tokens);
        try {
            configured = configured_template(JsonNode(config, ""));
        } catch (const std::runtime_error& error) {
            throw CheckpointError(config_file, error.what());
        }
    }
    // Older models name their special tokens in a file of its own; transformers reads it for those only.
    const fs::path map_file = directory / "special_tokens_map.json";
    if (!lists_added_tokens && fs::exists(map_file)) add_special_tokens(read_json_file(map_file), out.special_tokens);

    const fs::path template_file = directory / "chat_template.jinja";
    if (fs::exists(template_file)) {
        out.jinja = read_text_file(template_file);
        out.origin = template_file.string();
    } else if (configured) {
        out.jinja = *configured;
        out.origin = config_file.string();
    } else {
        return std::nullopt;
    }
    return out;
}

std::optional<ChatTemplateSource> find_in_gguf(const fs::path& file) {
    const std::unique_ptr<gguf_context, void (*)(gguf_context*)> gguf(open_gguf_metadata(file), &gguf_free);
    auto string_at = [&](const char* key) -> const char* {
        const int64_t at = gguf_find_key(gguf.get(), key);
        return at >= 0 && gguf_get_kv_type(gguf.get(), at) == GGUF_TYPE_STRING ? gguf_get_val_str(gguf.get(), at)
                                                                               : nullptr;
    };
    const char* source = string_at("tokenizer.chat_template");
    if (source == nullptr || *source == '\0') return std::nullopt;

    ChatTemplateSource out{source, {}, file.string()};
    const int64_t tokens = gguf_find_key(gguf.get(), "tokenizer.ggml.tokens");
    const bool readable = tokens >= 0 && gguf_get_kv_type(gguf.get(), tokens) == GGUF_TYPE_ARRAY &&
                          gguf_get_arr_type(gguf.get(), tokens) == GGUF_TYPE_STRING;
    const char* kind = string_at("tokenizer.ggml.model");
    const bool sentencepiece = kind != nullptr && std::string_view(kind) == "llama";
    constexpr uint32_t none = std::numeric_limits<uint32_t>::max();
    struct Special {
        const char* key;
        const char* variable;
        uint32_t of_sentencepiece;  // what llama.cpp assumes where the key is missing
    };
    static constexpr std::array<Special, 4> specials{{{"tokenizer.ggml.bos_token_id", "bos_token", 1},
                                                      {"tokenizer.ggml.eos_token_id", "eos_token", 2},
                                                      {"tokenizer.ggml.unknown_token_id", "unk_token", 0},
                                                      {"tokenizer.ggml.padding_token_id", "pad_token", none}}};
    for (const Special& special : specials) {
        const int64_t at = gguf_find_key(gguf.get(), special.key);
        uint32_t id = sentencepiece ? special.of_sentencepiece : none;
        if (at >= 0 && gguf_get_kv_type(gguf.get(), at) == GGUF_TYPE_UINT32) id = gguf_get_val_u32(gguf.get(), at);
        if (readable && id < gguf_get_arr_n(gguf.get(), tokens)) {
            out.special_tokens[special.variable] = gguf_get_arr_str(gguf.get(), tokens, id);
        }
    }
    return out;
}

}  // namespace

std::optional<ChatTemplateSource> find_chat_template(const fs::path& model) {
    std::error_code error;
    const fs::file_status status = fs::status(model, error);
    if (!fs::exists(status)) throw CheckpointError(model, "does not exist");
    if (fs::is_directory(status)) return find_in_directory(model);
    const bool in_directory = model.extension() == ".safetensors" || model.filename() == "tokenizer.json";
    return in_directory ? find_in_directory(model.parent_path()) : find_in_gguf(model);
}

}  // namespace kvscope::checkpoint
