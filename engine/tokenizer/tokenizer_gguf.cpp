#include "engine/tokenizer/tokenizer_gguf.h"

#include <fmt/format.h>
#include <gguf.h>
#include <llama-model-loader.h>
#include <llama-vocab.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "common/utf8.h"

namespace kvscope::checkpoint {
namespace {

constexpr const char* eos_key = "tokenizer.ggml.eos_token_id";

struct GgufFree {
    void operator()(gguf_context* context) const { gguf_free(context); }
};

/// Collects this thread's errors from llama.cpp, which reports them only through its global log.
class LlamaErrors {
 public:
    LlamaErrors() {
        llama_log_set(&LlamaErrors::receive, nullptr);
        collected_ = &text_;
    }
    ~LlamaErrors() { collected_ = nullptr; }
    LlamaErrors(const LlamaErrors&) = delete;
    LlamaErrors& operator=(const LlamaErrors&) = delete;

    std::string first() const {
        std::string_view line = std::string_view(text_).substr(0, text_.find('\n'));
        for (size_t colon = 0; (colon = line.find(": ")) != std::string_view::npos;) {
            const std::string_view head = line.substr(0, colon);
            const bool is_function =
                head.find(' ') == std::string_view::npos && head.find("::") != std::string_view::npos;
            const bool is_preamble =
                head.starts_with("llama_") || head.starts_with("gguf_") || head.starts_with("error loading");
            if (!is_function && !is_preamble) break;
            line.remove_prefix(colon + 2);
        }
        return line.empty() ? "no reason given" : std::string(line);
    }

 private:
    static void receive(ggml_log_level level, const char* text, void*) {
        if (collected_ != nullptr && level == GGML_LOG_LEVEL_ERROR) *collected_ += text;
    }
    static thread_local std::string* collected_;
    std::string text_;
};
thread_local std::string* LlamaErrors::collected_ = nullptr;

/// Refuses vocabularies for which llama.cpp would abort the process.
void check_vocabulary(const std::filesystem::path& file, const gguf_context* gguf) {
    auto array_of = [&](const char* key, gguf_type type, const char* type_name) -> int64_t {
        const int64_t at = gguf_find_key(gguf, key);
        if (at >= 0 && (gguf_get_kv_type(gguf, at) != GGUF_TYPE_ARRAY || gguf_get_arr_type(gguf, at) != type)) {
            throw CheckpointError(file, fmt::format("{} should be an array of {}", key, type_name));
        }
        return at;
    };

    const int64_t model = gguf_find_key(gguf, "tokenizer.ggml.model");
    if (model < 0) throw CheckpointError(file, "has no tokenizer (no metadata key tokenizer.ggml.model)");
    if (gguf_get_kv_type(gguf, model) != GGUF_TYPE_STRING) {
        throw CheckpointError(file, "tokenizer.ggml.model should be a string");
    }
    const std::string_view kind = gguf_get_val_str(gguf, model);
    if (kind != "llama" && kind != "gpt2") {
        throw CheckpointError(file,
                              fmt::format("its tokenizer is of the kind \"{}\"; supported are \"gpt2\" (byte-level "
                                          "BPE) and \"llama\" (SentencePiece BPE)",
                                          utf8_lossy(kind)));
    }
    if (kind == "gpt2") array_of("tokenizer.ggml.merges", GGUF_TYPE_STRING, "strings");

    const int64_t tokens = array_of("tokenizer.ggml.tokens", GGUF_TYPE_STRING, "strings");
    const size_t count = tokens < 0 ? 0 : gguf_get_arr_n(gguf, tokens);
    if (count == 0) throw CheckpointError(file, "its vocabulary is empty (tokenizer.ggml.tokens)");
    if (count > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
        throw CheckpointError(file, fmt::format("its vocabulary of {} tokens is too large", count));
    }
    std::unordered_map<std::string_view, size_t> seen;
    seen.reserve(count);
    for (size_t id = 0; id < count; ++id) {
        const std::string_view token = gguf_get_arr_str(gguf, tokens, id);
        const auto [first, is_new] = seen.emplace(token, id);
        if (!is_new && !token.empty()) {
            throw CheckpointError(file, fmt::format("tokens {} and {} are the same, \"{}\" (tokenizer.ggml.tokens)",
                                                    first->second, id, utf8_lossy(token)));
        }
        if (const size_t at = first_invalid_utf8(token); at != std::string_view::npos) {
            throw CheckpointError(file, fmt::format("token {} is not valid UTF-8 (tokenizer.ggml.tokens)", id));
        }
    }
}

class GgufTokenizer final : public Tokenizer {
 public:
    explicit GgufTokenizer(const std::filesystem::path& file) : file_(file) {
        const std::unique_ptr<gguf_context, GgufFree> gguf(open_gguf_metadata(file));
        check_vocabulary(file, gguf.get());

        read_vocabulary(file, gguf.get(), vocabulary_);
        read_ends(file, gguf.get());
        if (llama_vocab_get_add_bos(vocab_) && !bos_) {
            throw CheckpointError(file, "its tokenizer adds a BOS token but names none (tokenizer.ggml.bos_token_id)");
        }
        if (llama_vocab_get_add_eos(vocab_) && !eos_) {
            throw CheckpointError(file, "its tokenizer adds an EOS token but names none (tokenizer.ggml.eos_token_id)");
        }

        const auto count = static_cast<int32_t>(vocab_size());
        pieces_.reserve(count);
        ids_.reserve(count);
        for (int32_t id = 0; id < count; ++id) {
            pieces_.push_back(read_piece(id));
            if (pieces_.back().size() == 1) has_token_[static_cast<uint8_t>(pieces_.back()[0])] = true;
            ids_.emplace(llama_vocab_get_text(vocab_, id), id);
            if (llama_vocab_is_eog(vocab_, id) && id != assumed_end_) end_of_generation_.push_back(id);
        }
        // For a byte without a token, llama.cpp throws (SentencePiece) or drops the byte (byte-level BPE).
        const bool sentencepiece = llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_SPM;
        if (sentencepiece) {
            for (int byte = 0; byte < 256; ++byte) {
                const std::string token = fmt::format("<0x{:02X}>", byte);
                if (!ids_.contains(token) && !ids_.contains(std::string(1, static_cast<char>(byte)))) {
                    throw CheckpointError(file, "its vocabulary has no token for the byte " + token);
                }
            }
        }
        spells_spaces_ = sentencepiece;
        adds_leading_space_ = sentencepiece && reads_leading_space(gguf.get());

        const int64_t pre = gguf_find_key(gguf.get(), "tokenizer.ggml.pre");
        const bool named = pre >= 0 && gguf_get_kv_type(gguf.get(), pre) == GGUF_TYPE_STRING;
        description_ = sentencepiece ? "SentencePiece BPE (GGUF, llama.cpp)"
                                     : fmt::format("byte-level BPE, pre-tokenizer {} (GGUF, llama.cpp)",
                                                   named ? gguf_get_val_str(gguf.get(), pre) : "default");
    }

    std::vector<int32_t> tokenize(std::string_view text, bool add_special, bool parse_special,
                                  std::vector<uint32_t>* ends, const std::stop_token&) const override {
        require_utf8(text);
        constexpr size_t limit = std::numeric_limits<int32_t>::max() / 2;
        if (text.size() > limit) {
            throw std::invalid_argument(
                fmt::format("a text of {} bytes is too long to tokenize; at most {}", text.size(), limit));
        }
        const auto length = static_cast<int32_t>(text.size());
        // Each token has at least one byte, except BOS, EOS and SentencePiece's leading space.
        std::vector<int32_t> ids(text.size() + 16);
        auto tokenize = [&] {
            return llama_tokenize(vocab_, text.data(), length, ids.data(), static_cast<int32_t>(ids.size()),
                                  add_special, parse_special);
        };
        int32_t count = tokenize();
        if (count < 0 && count != std::numeric_limits<int32_t>::min()) {
            ids.resize(-count);
            count = tokenize();
        }
        if (count < 0) throw std::invalid_argument("the text is too long to tokenize");
        ids.resize(count);
        if (ends) *ends = ends_of(ids, text, add_special);
        return ids;
    }

    std::string decode(std::span<const int32_t> ids, bool skip_special, const std::stop_token&) const override {
        std::string bytes;
        bool first = true;
        for (const int32_t id : ids) {
            require_id(id);
            if (skip_special && is_special(id)) continue;
            std::string_view text = pieces_[id];
            if (first && adds_leading_space_ && text.starts_with(' ')) text.remove_prefix(1);
            first = false;
            bytes += text;
        }
        return utf8_lossy(bytes);
    }

    std::string piece(int32_t id, const std::stop_token&) const override {
        require_id(id);
        return pieces_[id];
    }

    int64_t vocab_size() const override { return llama_vocab_n_tokens(vocab_); }

    bool is_special(int32_t id) const override {
        require_id(id);
        return (llama_vocab_get_attr(vocab_, id) & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0;
    }

    std::optional<int32_t> id_of(std::string_view token) const override {
        const auto found = ids_.find(token);
        if (found == ids_.end()) return std::nullopt;
        return found->second;
    }

    std::optional<int32_t> bos() const override { return bos_; }
    std::optional<int32_t> eos() const override { return eos_; }
    std::span<const int32_t> end_of_generation() const override { return end_of_generation_; }
    std::string description() const override { return description_; }

 private:
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };

    /// For missing keys, llama.cpp assumes ids 1 and 2 for SentencePiece and 11 for byte-level vocabularies. In the
    /// supported families, 11 is an ordinary token.
    void read_ends(const std::filesystem::path& file, gguf_context* gguf) {
        const bool has_defaults = llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_SPM;
        const auto read = [&](const char* key, llama_token id) -> std::optional<int32_t> {
            const int64_t at = gguf_find_key(gguf, key);
            if (at < 0 && !has_defaults) return std::nullopt;
            if (at >= 0 && gguf_get_kv_type(gguf, at) == GGUF_TYPE_UINT32 &&
                gguf_get_val_u32(gguf, at) >= static_cast<uint32_t>(vocab_size())) {
                throw CheckpointError(file, fmt::format("{} is {}, expected a token id from 0 to {}", key,
                                                        gguf_get_val_u32(gguf, at), vocab_size() - 1));
            }
            return optional_id(id);
        };
        bos_ = read("tokenizer.ggml.bos_token_id", llama_vocab_bos(vocab_));
        eos_ = read(eos_key, llama_vocab_eos(vocab_));
        const llama_token assumed = llama_vocab_eos(vocab_);
        if (eos_ || assumed == LLAMA_TOKEN_NULL) return;
        // Uses another EOS id to test whether the text of the assumed token also ends generation.
        gguf_set_val_u32(gguf, eos_key, assumed == 0 ? 1 : 0);
        llama_vocab other;
        read_vocabulary(file, gguf, other);
        gguf_remove_key(gguf, eos_key);
        if (!llama_vocab_is_eog(&other, assumed)) assumed_end_ = assumed;
    }

    static void read_vocabulary(const std::filesystem::path& file, gguf_context* gguf, llama_vocab& vocabulary) {
        const LlamaErrors errors;
        try {
            std::vector<std::string> no_further_files;
            llama_model_loader loader(gguf, nullptr, nullptr, "", no_further_files, nullptr, LLAMA_LOAD_MODE_NONE,
                                      false, false, false, nullptr, nullptr);
            if (loader.get_arch() == LLM_ARCH_UNKNOWN)
                throw std::runtime_error("unknown model architecture: '" + loader.get_arch_name() + "'");
            vocabulary.load(loader, LLM_KV(loader.get_arch()));
        } catch (const std::exception& error) {
            throw CheckpointError(file, fmt::format("llama.cpp cannot read its vocabulary: {}", error.what()));
        }
    }

    /// Finds each token's end by searching for its text, because llama.cpp does not return positions.
    /// @throws CheckpointError if the tokens do not spell the text
    std::vector<uint32_t> ends_of(std::span<const int32_t> ids, std::string_view text, bool add_special) const {
        const std::vector<uint32_t> ends_of_bytes = ends_of_characters(text);
        const bool has_bos = add_special && llama_vocab_get_add_bos(vocab_);
        const bool has_eos = add_special && llama_vocab_get_add_eos(vocab_);
        std::vector<uint32_t> ends;
        ends.reserve(ids.size());
        size_t at = 0;
        bool space_comes = adds_leading_space_;  // a space precedes the text, and each part after an added token
        for (size_t i = 0; i < ids.size(); ++i) {
            const bool is_added = (has_bos && i == 0) || (has_eos && i + 1 == ids.size());
            const size_t begin = at;
            if (!is_added) {
                std::string_view piece = pieces_[ids[i]];
                // Kinds of tokens that llama.cpp finds before it tokenizes the rest of the text.
                constexpr int cut_out =
                    LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED;
                const bool is_text = (llama_vocab_get_attr(vocab_, ids[i]) & cut_out) == 0;
                if (is_text && space_comes && piece.starts_with(' ')) piece.remove_prefix(1);
                space_comes = adds_leading_space_ && !is_text;
                at = end_of_piece(piece, text, at);
            }
            if (at > begin)
                ends.push_back(ends_of_bytes[at - 1]);
            else
                ends.push_back(is_added || at == text.size() ? 0 : ends_of_bytes[at]);
        }
        while (at < text.size()) at = end_of_left_out(text, at);
        return ends;
    }

    /// Returns the end of the next piece in the text from `at` on. Skips bytes that the tokens omit.
    size_t end_of_piece(std::string_view piece, std::string_view text, size_t at) const {
        size_t end = 0;
        while ((end = end_of_match(piece, text, at)) == npos) at = end_of_left_out(text, at);
        return end;
    }

    /// Returns the end of an omitted byte: a byte without a token, or white space next to special tokens.
    size_t end_of_left_out(std::string_view text, size_t at) const {
        if (at < text.size() && !has_token_[static_cast<uint8_t>(text[at])]) return at + 1;
        const Utf8Character step = decode_utf8_character(text, at);
        if (step.is_valid && is_white_space(step.code)) return at + step.bytes;
        throw CheckpointError(
            file_,
            fmt::format("llama.cpp omits a character of the text at byte {}, although the vocabulary has tokens for "
                        "its bytes. Check the file for a merge (tokenizer.ggml.merges) whose result is not a token.",
                        at));
    }

    /// SentencePiece writes spaces as ▁, so a ▁ in the text becomes a space in the piece.
    size_t end_of_match(std::string_view piece, std::string_view text, size_t at) const {
        constexpr std::string_view underline = "▁";
        for (const char byte : piece) {
            if (at < text.size() && text[at] == byte) {
                ++at;
            } else if (byte == ' ' && spells_spaces_ && text.substr(at).starts_with(underline)) {
                at += underline.size();
            } else {
                return npos;
            }
        }
        return at;
    }

    static std::optional<int32_t> optional_id(llama_token id) {
        return id == LLAMA_TOKEN_NULL ? std::nullopt : std::optional<int32_t>(id);
    }

    static bool reads_leading_space(const gguf_context* gguf) {
        const int64_t at = gguf_find_key(gguf, "tokenizer.ggml.add_space_prefix");
        return at < 0 || gguf_get_kv_type(gguf, at) != GGUF_TYPE_BOOL || gguf_get_val_bool(gguf, at);
    }

    std::string read_piece(int32_t id) const {
        std::string text(32, '\0');
        int32_t length = llama_token_to_piece(vocab_, id, text.data(), static_cast<int32_t>(text.size()), 0, true);
        if (length < 0) {
            text.resize(-length);
            length = llama_token_to_piece(vocab_, id, text.data(), static_cast<int32_t>(text.size()), 0, true);
        }
        text.resize(std::max(length, 0));
        return text;
    }

    std::filesystem::path file_;
    llama_vocab vocabulary_;
    const llama_vocab* vocab_ = &vocabulary_;
    std::vector<std::string> pieces_;
    std::array<bool, 256> has_token_{};  ///< whether a byte alone has a token
    std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
    std::vector<int32_t> end_of_generation_;
    std::optional<int32_t> bos_, eos_;
    std::optional<int32_t> assumed_end_;  ///< llama.cpp's assumed EOS if the file names none
    bool adds_leading_space_ = false;
    bool spells_spaces_ = false;  ///< whether spaces are written as ▁
    static constexpr size_t npos = std::string_view::npos;
    std::string description_;
};

}  // namespace

gguf_context* open_gguf_metadata(const std::filesystem::path& file) {
    const LlamaErrors errors;
    gguf_context* gguf = gguf_init_from_file(file.c_str(), {.no_alloc = true, .ctx = nullptr});
    if (gguf == nullptr) throw CheckpointError(file, "is not a readable GGUF file: " + errors.first());
    return gguf;
}

std::unique_ptr<Tokenizer> open_gguf_tokenizer(const std::filesystem::path& file) {
    return std::make_unique<GgufTokenizer>(file);
}

}  // namespace kvscope::checkpoint
