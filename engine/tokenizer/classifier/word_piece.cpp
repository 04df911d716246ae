#include <fmt/format.h>

#include <unordered_map>

#include "engine/tokenizer/classifier/word_model.h"
#include "engine/tokenizer/tokenizer_post_processor.h"

namespace kvscope::checkpoint {
namespace {

class WordPiece final : public WordModel {
 public:
    explicit WordPiece(const JsonNode& node)
        : prefix_(node.text_or("continuing_subword_prefix", "##")),
          longest_word_(node.find("max_input_chars_per_word") ? node.at("max_input_chars_per_word").integer() : 100) {
        const JsonNode vocabulary = node.at("vocab");
        vocabulary.require_object();
        for (const auto& [token, value] : vocabulary.json().items()) {
            const int32_t id = read_token_id(JsonNode(value, fmt::format("{}[\"{}\"]", vocabulary.where(), token)));
            if (static_cast<size_t>(id) >= spellings_.size()) spellings_.resize(static_cast<size_t>(id) + 1);
            spellings_[static_cast<size_t>(id)] = token;
            ids_.emplace(token, id);
        }
        const std::string unknown = node.text_or("unk_token", "[UNK]");
        const auto found = ids_.find(unknown);
        if (found == ids_.end()) node.fail(fmt::format("the unknown token \"{}\" is not in the vocabulary", unknown));
        unknown_ = found->second;
    }

    void encode(const AlignedText& word, std::vector<TextToken>& out, TokenizerLimits& limits) const override {
        const TextToken whole{unknown_, word.front().begin, word.back().end};
        if (static_cast<int64_t>(word.size()) > longest_word_) return out.push_back(whole);
        const size_t first = out.size();
        const std::span<const AlignedCharacter> all(word);
        for (size_t begin = 0; begin < word.size();) {
            const std::string lead = begin > 0 ? prefix_ : "";
            size_t end = word.size();
            auto found = ids_.end();
            for (; end > begin; --end) {
                limits.step();
                found = ids_.find(lead + aligned_text_to_utf8(all.subspan(begin, end - begin)));
                if (found != ids_.end()) break;
            }
            if (found == ids_.end()) {
                out.resize(first);
                out.push_back(whole);
                return;
            }
            out.push_back({found->second, word[begin].begin, word[end - 1].end});
            begin = end;
        }
    }

    const std::vector<std::string>& spellings() const override { return spellings_; }
    bool continues_word(int32_t id) const override {
        return spellings_.at(static_cast<size_t>(id)).starts_with(prefix_);
    }
    std::string_view name() const override { return "WordPiece"; }

 private:
    std::string prefix_;
    int64_t longest_word_;
    std::vector<std::string> spellings_;
    std::unordered_map<std::string, int32_t> ids_;
    int32_t unknown_ = -1;
};

}  // namespace

std::unique_ptr<WordModel> make_word_piece(const JsonNode& node) { return std::make_unique<WordPiece>(node); }

}  // namespace kvscope::checkpoint
