#include "engine/tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "engine/files/checkpoint_error.h"
#include "engine/files/json_text.h"
#include "engine/tokenizer/tokenizer_post_processor.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// transformers' SPECIAL_TOKENS_ATTRIBUTES, in the same order.
constexpr std::array<const char*, 7> standard_names = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                       "pad_token", "cls_token", "mask_token"};
constexpr std::array<const char*, 2> list_names = {"extra_special_tokens", "additional_special_tokens"};

struct Field {
    ordered_json value;
    fs::path file;
    bool is_legacy = false;  ///< from special_tokens_map.json, where all tokens are special
};
using Fields = std::vector<std::pair<std::string, Field>>;  // in the order of the files

const Field* find(const Fields& fields, std::string_view name) {
    const auto found =
        std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
    return found == fields.end() || found->second.value.is_null() ? nullptr : &found->second;
}

void merge(Fields& fields, const ordered_json& object, const fs::path& file, bool is_legacy) {
    for (const auto& item : object.items()) {
        const std::string& name = item.key();
        const ordered_json& value = item.value();
        const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.first == name; });
        if (found != fields.end()) {
            found->second = {value, file, is_legacy};
        } else {
            fields.emplace_back(name, Field{value, file, is_legacy});
        }
    }
}

/// Reads a token given as a text or an object. Returns nullopt for other values, such as add_bos_token.
std::optional<AddedToken> as_token(const ordered_json& value, const std::string& where, bool is_special) {
    AddedToken token;
    token.special = true;
    if (value.is_string()) {
        token.content = value.get<std::string>();
        return token;
    }
    if (!value.is_object() || !value.contains("content")) return std::nullopt;
    const nlohmann::json plain = value;
    token = read_token_flags(JsonNode(plain, where));
    token.special = token.special || is_special;
    return token;
}

class Reading {
 public:
    explicit Reading(fs::path directory) : directory_(std::move(directory)) {}

    TokenizerConfig read() {
        const ordered_json config = load("tokenizer_config.json");
        if (config.value("split_special_tokens", ordered_json(false)) == true)
            throw CheckpointError(directory_ / "tokenizer_config.json",
                                  "split_special_tokens is true, which would encode the chat template's control tokens "
                                  "as text. kvscope supports only false.");
        out_.whole = config;
        merge(fields_, config, directory_ / "tokenizer_config.json", false);
        if (const Field* decoder = find(fields_, "added_tokens_decoder")) {
            with_file_in_errors(decoder->file, [&] { add_decoder(decoder->value); });
        } else {
            merge(fields_, load("special_tokens_map.json"), directory_ / "special_tokens_map.json", true);
            add_legacy_file();
        }
        add_named();
        add_lists();
        return std::move(out_);
    }

 private:
    ordered_json load(const char* name) const {
        const fs::path file = directory_ / name;
        if (!fs::exists(file)) return ordered_json::object();
        return read_json_object<ordered_json>(file);
    }

    void add(AddedToken token, const fs::path& file, bool replaces) {
        if (!token.content.empty()) out_.tokens.push_back({std::move(token), file, replaces});
    }

    /// Reads {"32000": {"content": "<|user|>", "lstrip": false, …}, …}.
    void add_decoder(const ordered_json& decoder) {
        std::map<int32_t, AddedToken> by_id;
        const nlohmann::json plain = decoder;
        JsonNode(plain, "added_tokens_decoder").require_object();
        for (const auto& [key, value] : plain.items()) {
            const JsonNode node(value, fmt::format("added_tokens_decoder[\"{}\"]", key));
            int64_t number = -1;
            const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
            if (error != std::errc() || end != key.data() + key.size()) node.fail("expected a token id as name");
            const int32_t id = read_token_id(JsonNode(nlohmann::json(number), node.where()));
            by_id[id] = read_token_flags(node);
            by_id[id].id = id;
        }
        for (auto& [id, token] : by_id) add(std::move(token), directory_ / "tokenizer_config.json", true);
    }

    /// Reads added_tokens.json, {"<|user|>": 32000, …}. Other files decide which tokens are special.
    void add_legacy_file() {
        const fs::path file = directory_ / "added_tokens.json";
        const nlohmann::json tokens = load("added_tokens.json");
        const std::set<std::string> special = special_texts();
        std::map<int32_t, AddedToken> by_id;
        with_file_in_errors(file, [&] {
            for (const auto& [content, value] : tokens.items()) {
                const int32_t id = read_token_id(JsonNode(value, fmt::format("[\"{}\"]", content)));
                const bool is_special = special.contains(content);
                by_id[id] = {.id = id, .content = content, .normalized = !is_special, .special = is_special};
            }
        });
        for (auto& [id, token] : by_id) add(std::move(token), file, false);
    }

    std::set<std::string> special_texts() const {
        std::set<std::string> texts;
        each_named([&](const std::string&, const AddedToken& token, const fs::path&) { texts.insert(token.content); });
        each_listed([&](const AddedToken& token, const fs::path&) { texts.insert(token.content); });
        return texts;
    }

    template <typename Take>
    void each_named(Take&& take) const {
        const auto offer = [&](const std::string& name, const Field& field, const ordered_json& value) {
            with_file_in_errors(field.file, [&] {
                if (const auto token = as_token(value, name, true)) take(name, *token, field.file);
            });
        };
        for (const char* name : standard_names)
            if (const Field* field = find(fields_, name)) offer(name, *field, field->value);
        for (const auto& [name, field] : fields_) {
            const bool is_standard =
                std::find(standard_names.begin(), standard_names.end(), name) != standard_names.end();
            if (name.ends_with("_token") && !is_standard) offer(name, field, field.value);
        }
        for (const char* list : {"extra_special_tokens", "model_specific_special_tokens"}) {
            const Field* field = find(fields_, list);
            if (field == nullptr || !field->value.is_object()) continue;
            for (const auto& [name, value] : field->value.items()) offer(name, *field, value);
        }
    }

    template <typename Take>
    void each_listed(Take&& take) const {
        for (const char* name : list_names) {
            const Field* field = find(fields_, name);
            if (field == nullptr || !field->value.is_array()) continue;
            for (size_t i = 0; i < field->value.size(); ++i) {
                const std::string where = fmt::format("{}[{}]", name, i);
                with_file_in_errors(field->file, [&] {
                    const auto token = as_token(field->value[i], where, field->is_legacy);
                    if (!token) throw std::runtime_error(where + ": expected a token, as a text or an object");
                    take(*token, field->file);
                });
            }
            return;
        }
    }

    void add_named() {
        each_named([&](const std::string& name, const AddedToken& token, const fs::path& file) {
            if (!token.content.empty()) out_.special_tokens[name] = token.content;
            add(token, file, false);
        });
    }

    void add_lists() {
        each_listed([&](const AddedToken& token, const fs::path& file) { add(token, file, false); });
    }

    fs::path directory_;
    Fields fields_;
    TokenizerConfig out_;
};

}  // namespace

AddedToken read_token_flags(const JsonNode& node) {
    AddedToken token;
    token.content = node.at("content").text();
    token.special = node.boolean_or("special", false);
    token.single_word = node.boolean_or("single_word", false);
    token.lstrip = node.boolean_or("lstrip", false);
    token.rstrip = node.boolean_or("rstrip", false);
    token.normalized = node.boolean_or("normalized", !token.special);
    return token;
}

TokenizerConfig TokenizerConfig::read(const fs::path& directory) { return Reading(directory).read(); }

}  // namespace kvscope::checkpoint
