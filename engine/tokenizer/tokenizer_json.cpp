#include "engine/tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/utf8.h"
#include "engine/files/json_text.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/tokenizer_added_tokens.h"
#include "engine/tokenizer/tokenizer_config.h"
#include "engine/tokenizer/tokenizer_decoder.h"
#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_normalizer.h"
#include "engine/tokenizer/tokenizer_post_processor.h"
#include "engine/tokenizer/tokenizer_pretokenizer.h"

namespace kvscope::checkpoint {
namespace {

Bpe::Vocabulary read_vocabulary(const JsonNode& node) {
    node.require_object();
    Bpe::Vocabulary vocabulary;
    vocabulary.reserve(node.json().size());
    std::vector<bool> used;
    for (const auto& [token, value] : node.json().items()) {
        const int32_t id = read_token_id(JsonNode(value, fmt::format("{}[\"{}\"]", node.where(), token)));
        if (static_cast<size_t>(id) >= used.size()) used.resize(std::max<size_t>(id + 1, used.size() * 2));
        if (used[id]) node.fail(fmt::format("token id {} is given twice, the second time to \"{}\"", id, token));
        used[id] = true;
        vocabulary.emplace_back(token, id);
    }
    if (vocabulary.empty()) node.fail("is empty");
    return vocabulary;
}

Bpe::Merges read_merges(const JsonNode& node) {
    node.require_array();
    Bpe::Merges merges;
    merges.reserve(node.size());
    for (size_t i = 0; i < node.size(); ++i) {
        const nlohmann::json& merge = node.json()[i];
        if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
            merges.emplace_back(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
        } else if (merge.is_array()) {
            if (merge.size() != 2) node[i].fail(fmt::format("expected a merge of 2 parts, found {}", merge.size()));
            node[i][0].text();
            node[i][1].text();
        } else if (!merge.is_string()) {
            node[i].text();
        } else if (const auto& text = merge.get_ref<const std::string&>(); !text.starts_with("#version")) {
            const size_t space = text.find(' ');
            if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
                node[i].fail(fmt::format("expected two tokens separated by a space, found \"{}\"", text));
            }
            merges.emplace_back(text.substr(0, space), text.substr(space + 1));
        }
    }
    return merges;
}

Bpe read_model(const JsonNode& node) {
    const std::string type = node.text_or("type", node.find("merges") ? "BPE" : "unknown");
    if (type != "BPE") {
        node.fail(fmt::format(
            "tokenizers of type \"{}\" are not supported; supported are byte-level BPE and BPE with byte fallback",
            type));
    }
    if (const auto dropout = node.find("dropout"); dropout && (!dropout->json().is_number() || dropout->json() != 0)) {
        dropout->fail("BPE dropout is not supported, because it makes encodings random");
    }
    BpeOptions options;
    if (const auto unknown = node.find("unk_token")) options.unknown_token = unknown->text();
    options.continuing_subword_prefix = node.text_or("continuing_subword_prefix", "");
    options.end_of_word_suffix = node.text_or("end_of_word_suffix", "");
    options.fuse_unknown = node.boolean_or("fuse_unk", false);
    options.byte_fallback = node.boolean_or("byte_fallback", false);
    options.ignore_merges = node.boolean_or("ignore_merges", false);
    return Bpe(read_vocabulary(node.at("vocab")), read_merges(node.at("merges")), std::move(options));
}

AddedToken read_added_token(const JsonNode& node) {
    AddedToken token = read_token_flags(node);
    token.id = read_token_id(node.at("id"));
    return token;
}

void append_ids(const nlohmann::json& config, const char* key, std::set<int32_t>& out) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null()) return;
    const JsonNode node(*found, key);
    if (!found->is_array()) {
        out.insert(read_token_id(node));
        return;
    }
    for (size_t i = 0; i < node.size(); ++i) out.insert(read_token_id(node[i]));
}

/// Longest decoded token in bytes. The limit bounds the memory for a prompt's pieces.
constexpr size_t longest_piece = 4096;

class JsonTokenizer final : public Tokenizer {
 public:
    JsonTokenizer(const std::filesystem::path& directory, const std::stop_token& stop)
        : file_(directory / "tokenizer.json") {
        const TokenizerConfig config = TokenizerConfig::read(directory);
        const nlohmann::json root = read_json_object(file_);
        with_file_in_errors(file_, [&] { read_tokenizer(JsonNode(root, ""), config, stop); });
        read_configs(directory, config);
    }

    std::vector<int32_t> tokenize(std::string_view text, bool add_special, bool parse_special,
                                  std::vector<uint32_t>* ends, const std::stop_token& stop) const override {
        require_utf8(text);
        TokenizerLimits limits(file_, text.size(), stop);
        const std::vector<uint32_t> ends_of_bytes = ends ? ends_of_characters(text) : std::vector<uint32_t>();
        const TracedView whole{text, ends ? ends_of_bytes.data() : nullptr};
        TextArena arena(limits);
        std::vector<Piece> between, pieces, words;
        if (!text.empty()) raw_tokens_.cut({whole, true, -1}, parse_special, between, limits);
        for (Piece piece : between) {
            if (piece.token >= 0) {
                pieces.push_back(piece);
                continue;
            }
            if (normalizer_) static_cast<TracedView&>(piece) = arena.keep(normalizer_(piece, limits));
            if (!piece.text.empty()) normalized_tokens_.cut(piece, parse_special, pieces, limits);
        }

        std::vector<int32_t> ids;
        if (add_special) ids = surrounding_.before;
        if (ends) ends->assign(ids.size(), 0);
        Bpe::Encoder encoder(*bpe_, limits);
        const auto encode_word = [&](TracedView word) {
            const size_t first = ids.size();
            encoder.encode(word.text, ids, ends);
            for (size_t i = first; ends && i < ids.size(); ++i) (*ends)[i] = word.end_of((*ends)[i] - 1);
        };
        for (const Piece& piece : pieces) {
            if (piece.token >= 0) {
                ids.push_back(piece.token);
                if (ends) ends->push_back(piece.end_of(piece.text.size() - 1));
            } else if (!pre_tokenizer_) {
                encode_word(piece);
            } else {
                words.clear();
                pre_tokenizer_(piece, arena, words);
                for (const Piece& word : words) encode_word(word);
            }
        }
        if (add_special) ids.insert(ids.end(), surrounding_.after.begin(), surrounding_.after.end());
        if (ends) ends->resize(ids.size(), 0);
        return ids;
    }

    std::string decode(std::span<const int32_t> ids, bool skip_special, const std::stop_token& stop) const override {
        std::vector<std::string> spellings;
        spellings.reserve(ids.size());
        size_t bytes = 0;
        for (const int32_t id : ids) {
            require_id(id);
            if (spellings_[id].empty() || (skip_special && special_[id])) continue;
            spellings.push_back(spellings_[id]);
            bytes += spellings_[id].size();
        }
        TokenizerLimits limits(file_, bytes, stop);
        std::string text;
        if (decoder_) {
            for (const std::string& part : decoder_->apply(std::move(spellings), limits)) text += part;
        } else {
            for (const std::string& spelling : spellings) text += (text.empty() ? "" : " ") + spelling;
        }
        return utf8_lossy(text);
    }

    std::string piece(int32_t id, const std::stop_token& stop) const override {
        require_id(id);
        TokenizerLimits limits(file_, spellings_[id].size(), stop, longest_piece);
        return decoder_ ? decoder_->piece(spellings_[id], limits) : spellings_[id];
    }

    int64_t vocab_size() const override { return static_cast<int64_t>(spellings_.size()); }

    bool is_special(int32_t id) const override {
        require_id(id);
        return special_[id];
    }

    std::optional<int32_t> id_of(std::string_view token) const override {
        if (const auto added = added_.find(token); added != added_.end()) return added->second;
        return bpe_->id_of(token);
    }

    std::optional<int32_t> bos() const override { return bos_; }
    std::optional<int32_t> eos() const override { return eos_; }
    std::span<const int32_t> end_of_generation() const override { return end_of_generation_; }
    std::string description() const override { return description_; }

 private:
    void read_tokenizer(const JsonNode& root, const TokenizerConfig& config, const std::stop_token& stop) {
        bpe_ = std::make_unique<Bpe>(read_model(root.at("model")));
        if (const auto node = root.find("normalizer")) normalizer_ = make_normalizer(*node);
        if (const auto node = root.find("pre_tokenizer")) pre_tokenizer_ = make_pre_tokenizer(*node);
        if (const auto node = root.find("decoder")) decoder_ = make_decoder(*node);
        if (const auto node = root.find("post_processor")) read_post_processor(*node, surrounding_);

        for (const auto& [token, id] : root.at("model").at("vocab").json().items()) spell(id.get<int32_t>(), token);
        TokenizerLimits limits(file_, 0, stop, longest_piece);
        for (const AddedToken& token : added_tokens(root, config)) add_token(token, limits);
        for (const int32_t id : surrounding_.before) require_known(id, "post_processor");
        for (const int32_t id : surrounding_.after) require_known(id, "post_processor");
        description_ = root.at("model").boolean_or("byte_fallback", false) ? "BPE with byte fallback (tokenizer.json)"
                                                                           : "byte-level BPE (tokenizer.json)";
    }

    void spell(int32_t id, std::string_view token) {
        if (static_cast<size_t>(id) >= spellings_.size()) {
            spellings_.resize(id + 1);
            special_.resize(id + 1);
        }
        spellings_[id] = token;
    }

    std::vector<AddedToken> added_tokens(const JsonNode& root, const TokenizerConfig& config) {
        std::vector<AddedToken> all;
        std::map<std::string_view, size_t> places;  // index in added_ by text
        const auto take = [&](const AddedToken& token) {
            spell(token.id, token.content);
            const std::string_view content = added_.emplace(token.content, token.id).first->first;
            if (const auto [place, is_new] = places.emplace(content, all.size()); is_new) {
                all.push_back(token);
            } else {
                all[place->second] = token;
            }
        };
        if (const auto list = root.find("added_tokens")) {
            for (size_t i = 0; i < list->size(); ++i) {
                const AddedToken token = read_added_token((*list)[i]);
                if (token.content.empty()) continue;
                if (const std::string problem = problem_of(token); !problem.empty()) (*list)[i].fail(problem);
                take(token);
            }
        }
        const auto n_in_model = static_cast<int32_t>(root.at("model").at("vocab").json().size());
        int32_t highest = -1;
        for (const auto& [content, id] : added_) highest = std::max(highest, id);
        for (const NamedToken& named : config.tokens) {
            AddedToken token = named.token;
            if (added_.contains(token.content) && !named.replaces) continue;
            // As in `tokenizers`, a token without an id gets the vocabulary's id or else the next free id.
            if (token.id < 0) token.id = id_of(token.content).value_or(std::max(n_in_model, highest + 1));
            if (const std::string problem = problem_of(token); !problem.empty())
                throw CheckpointError(named.file, problem);
            highest = std::max(highest, token.id);
            take(token);
        }
        return all;
    }

    std::string problem_of(const AddedToken& token) const {
        const auto known = id_of(token.content);
        const bool id_taken = static_cast<size_t>(token.id) < spellings_.size() && !spellings_[token.id].empty() &&
                              spellings_[token.id] != token.content;
        if ((!known || *known == token.id) && !id_taken) return {};
        return fmt::format("the added token \"{}\" has the id {}, but {}", token.content, token.id,
                           known ? fmt::format("the vocabulary gives it {}", *known)
                                 : fmt::format("the vocabulary uses that id for \"{}\"", spellings_[token.id]));
    }

    void add_token(const AddedToken& token, TokenizerLimits& limits) {
        special_[token.id] = token.special;
        if (!token.normalized) {
            raw_tokens_.add(token, token.content);
        } else {
            limits.set_text_bytes(token.content.size());
            limits.step();
            TracedText text(false);
            text.append(token.content, 0);
            if (normalizer_) text = normalizer_(text.view(), limits);
            limits.require_length(text.size());
            normalized_tokens_.add(token, text.view().text);
        }
    }

    void require_known(int32_t id, const char* where) const {
        if (static_cast<size_t>(id) >= spellings_.size() || spellings_[id].empty()) {
            throw std::runtime_error(fmt::format("{}: token id {} is not in the vocabulary", where, id));
        }
    }

    void read_configs(const std::filesystem::path& directory, const TokenizerConfig& tokenizer_config) {
        auto read = [&](const char* name, auto&& use) {
            const std::filesystem::path file = directory / name;
            if (std::filesystem::exists(file)) with_file_in_errors(file, [&] { use(read_json_object(file)); });
        };
        auto require_all_known = [&](const std::set<int32_t>& ids, const char* key) {
            for (const int32_t id : ids) require_known(id, key);
        };

        std::set<int32_t> ends, begins;
        const auto& named = tokenizer_config.special_tokens;
        if (const auto token = named.find("bos_token"); token != named.end()) bos_ = id_of(token->second);
        if (const auto token = named.find("eos_token"); token != named.end()) eos_ = id_of(token->second);
        read("generation_config.json", [&](const nlohmann::json& config) {
            append_ids(config, "eos_token_id", ends);
            require_all_known(ends, "eos_token_id");
        });
        read("config.json", [&](const nlohmann::json& config) {
            if (ends.empty()) append_ids(config, "eos_token_id", ends);
            if (!bos_) append_ids(config, "bos_token_id", begins);
            require_all_known(ends, "eos_token_id");
            require_all_known(begins, "bos_token_id");
        });
        if (!bos_ && !begins.empty()) bos_ = *begins.begin();
        if (!eos_ && !ends.empty()) eos_ = *ends.begin();
        if (ends.empty() && eos_) ends.insert(*eos_);
        end_of_generation_.assign(ends.begin(), ends.end());
    }

    std::filesystem::path file_;
    std::unique_ptr<Bpe> bpe_;
    Normalizer normalizer_;
    PreTokenizer pre_tokenizer_;
    std::unique_ptr<Decoder> decoder_;
    Surrounding surrounding_;
    AddedTokenFinder raw_tokens_, normalized_tokens_;
    std::map<std::string, int32_t, std::less<>> added_;
    std::vector<std::string> spellings_;  // as in the file, by id; empty for unused ids
    std::vector<bool> special_;
    std::optional<int32_t> bos_, eos_;
    std::vector<int32_t> end_of_generation_;
    std::string description_;
};

}  // namespace

std::unique_ptr<Tokenizer> open_json_tokenizer(const std::filesystem::path& directory, const std::stop_token& stop) {
    return std::make_unique<JsonTokenizer>(directory, stop);
}

}  // namespace kvscope::checkpoint
