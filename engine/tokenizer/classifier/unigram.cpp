#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "engine/tokenizer/classifier/word_model.h"

namespace kvscope::checkpoint {
namespace {

// An unknown character scores this much less than the least likely token.
constexpr double unknown_penalty = 10.0;

class Unigram final : public WordModel {
 public:
    explicit Unigram(const JsonNode& node) {
        if (node.boolean_or("byte_fallback", false)) node.fail("byte_fallback is not supported for a token classifier");
        const JsonNode vocabulary = node.at("vocab");
        vocabulary.require_array();
        double least = std::numeric_limits<double>::infinity();
        for (size_t i = 0; i < vocabulary.size(); ++i) {
            const nlohmann::json& entry = vocabulary.json()[i];
            if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
                vocabulary[i].fail("expected a token and its score: [\"token\", -1.5]");
            const auto& token = entry[0].get_ref<const std::string&>();
            spellings_.push_back(token);
            scores_.push_back(entry[1].get<double>());
            ids_.insert_or_assign(token, static_cast<int32_t>(i));
            least = std::min(least, scores_.back());
            longest_token_ = std::max(longest_token_, make_aligned_text(token).size());
        }
        const int64_t unknown = node.at("unk_id").integer();
        if (unknown < 0 || unknown >= static_cast<int64_t>(spellings_.size()))
            node.at("unk_id").fail(fmt::format("{} is not in the vocabulary of {} tokens", unknown, spellings_.size()));
        unknown_ = static_cast<int32_t>(unknown);
        unknown_score_ = least - unknown_penalty;
    }

    void encode(const AlignedText& word, std::vector<TextToken>& out, TokenizerLimits& limits) const override {
        const std::vector<Best> best = best_paths(word, limits);
        std::vector<TextToken> tokens;  // in reverse order
        for (size_t end = word.size(); end > 0; end = best[end].begin) {
            const size_t begin = best[end].begin;
            if (best[end].id == unknown_ && !tokens.empty() && tokens.back().id == unknown_) {
                tokens.back().begin = word[begin].begin;
            } else {
                tokens.push_back({best[end].id, word[begin].begin, word[end - 1].end});
            }
        }
        out.insert(out.end(), tokens.rbegin(), tokens.rend());
    }

    const std::vector<std::string>& spellings() const override { return spellings_; }
    /// As in LLMLingua-2, each punctuation mark (of Python's string.punctuation) is a word.
    bool continues_word(int32_t id) const override {
        static constexpr std::string_view punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
        const std::string& token = spellings_.at(static_cast<size_t>(id));
        return !token.starts_with("▁") && punctuation.find(token) == std::string_view::npos;
    }
    std::string_view name() const override { return "Unigram"; }

 private:
    /// Best segmentation up to a position, with the id and the start of its last token.
    struct Best {
        double score = -std::numeric_limits<double>::infinity();
        size_t begin = 0;
        int32_t id = -1;
    };

    std::vector<Best> best_paths(const AlignedText& word, TokenizerLimits& limits) const {
        std::vector<Best> best(word.size() + 1);
        best[0].score = 0;
        std::string piece;
        for (size_t begin = 0; begin < word.size(); ++begin) {
            const auto offer = [&](size_t end, int32_t id, double score) {
                const double sum = best[begin].score + score;
                if (best[end].id < 0 || sum > best[end].score) best[end] = {sum, begin, id};
            };
            bool single = false;
            piece.clear();
            for (size_t end = begin + 1; end <= std::min(word.size(), begin + longest_token_); ++end) {
                limits.step();
                piece += aligned_text_to_utf8(std::span(word).subspan(end - 1, 1));
                const auto found = ids_.find(piece);
                if (found == ids_.end()) continue;
                offer(end, found->second, scores_[static_cast<size_t>(found->second)]);
                single = single || end == begin + 1;
            }
            if (!single) offer(begin + 1, unknown_, unknown_score_);
        }
        return best;
    }

    std::vector<std::string> spellings_;
    std::vector<double> scores_;
    std::unordered_map<std::string, int32_t> ids_;
    size_t longest_token_ = 1;
    int32_t unknown_ = -1;
    double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<WordModel> make_unigram(const JsonNode& node) { return std::make_unique<Unigram>(node); }

}  // namespace kvscope::checkpoint
