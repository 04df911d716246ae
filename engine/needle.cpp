#include "engine/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/common/engine_error.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::engine {
namespace {

using policies::SeededRandom;

constexpr std::array noise{"The grass is green.", "The sky is blue.", "The sun is yellow.", "Here we go.",
                           "There and back again."};

constexpr std::array names{"lantern", "anchor",  "compass", "kettle", "violin", "meadow", "harbor", "orchard",
                           "saddle",  "pepper",  "marble",  "walnut", "candle", "pillow", "ribbon", "basket",
                           "hammer",  "feather", "blanket", "mirror", "bottle", "ladder", "pencil", "window"};

/// Splits a text after each . ! or ? that white space follows. Line breaks become spaces.
std::vector<std::string> sentences_of(std::string_view text) {
    std::vector<std::string> sentences;
    std::string sentence;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool is_space = text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t';
        if (!is_space) sentence += text[i];
        if (is_space && !sentence.empty() && sentence.back() != ' ') sentence += ' ';
        const bool ends = !is_space && (text[i] == '.' || text[i] == '!' || text[i] == '?') &&
                          (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n' || text[i + 1] == '\r');
        if (ends) sentences.push_back(std::exchange(sentence, {}));
    }
    while (!sentence.empty() && sentence.back() == ' ') sentence.pop_back();
    if (!sentence.empty()) sentences.push_back(sentence);
    return sentences;
}

class Haystack {
 public:
    Haystack(const std::string& text, SeededRandom random) : random_(random) {
        if (!text.empty()) sentences_ = sentences_of(text);
        is_noise_ = sentences_.empty();
        if (is_noise_) sentences_.assign(noise.begin(), noise.end());
    }

    const std::string& next() {
        if (next_ == 0 && !is_noise_) {
            for (size_t i = sentences_.size(); i > 1; --i)
                std::swap(sentences_[i - 1], sentences_[static_cast<size_t>(random_.below(static_cast<int64_t>(i)))]);
        }
        const std::string& sentence = sentences_[next_];
        next_ = (next_ + 1) % sentences_.size();
        return sentence;
    }

 private:
    SeededRandom random_;
    std::vector<std::string> sentences_;
    bool is_noise_ = false;
    size_t next_ = 0;
};

}  // namespace

NeedlePrompt make_needle_prompt(const checkpoint::Tokenizer& tokenizer, const NeedleOptions& options) {
    if (!(options.depth >= 0.0 && options.depth <= 1.0))
        throw UsageError(fmt::format("a needle's depth must be from 0 to 1, found {}", options.depth));
    SeededRandom random(options.seed);
    const auto draw = [&](const auto& from) {
        return std::string(from[static_cast<size_t>(random.below(static_cast<int64_t>(from.size())))]);
    };
    NeedlePrompt prompt;
    const std::string name = draw(names);
    prompt.answer = std::to_string(100000 + random.below(900000));
    prompt.statement = fmt::format("The special magic number of the {} is {}.", name, prompt.answer);
    prompt.needle = prompt.statement;
    prompt.question = fmt::format("What is the special magic number of the {}? Answer with the number.", name);
    if (options.kind == NeedleKind::reasoning) {
        std::string owner = draw(std::array{"Alice", "Boris", "Clara", "David", "Elena", "Frank"});
        prompt.needle = fmt::format("{} owns the {}. {}", owner, name, prompt.statement);
        prompt.question =
            fmt::format("What is the special magic number of the thing that {} owns? Answer with the number.", owner);
    }
    const auto count = [&](const std::string& text) {
        return static_cast<int64_t>(tokenizer.encode(text, false, false).size());
    };
    const int64_t n_before = count(".");
    const auto n_tokens = [&](const std::string& sentence) {
        // Counts the tokens after a full stop, as in the context. A sentence of unknown letters may have no tokens.
        return std::max<int64_t>(1, count(". " + sentence) - n_before);
    };
    Haystack haystack(options.text, random);
    std::vector<std::string> sentences;
    int64_t total = n_tokens(prompt.needle);
    for (;;) {
        const std::string& sentence = haystack.next();
        const int64_t length = n_tokens(sentence);
        if (total + length > options.n_tokens) break;
        total += length;
        sentences.push_back(sentence);
    }
    if (sentences.empty())
        throw UsageError(fmt::format("{} tokens leave no space for a sentence beside the needle: use a longer context",
                                     options.n_tokens));
    for (;;) {
        auto with_needle = sentences;
        const auto place = std::lround(options.depth * static_cast<double>(sentences.size()));
        with_needle.insert(with_needle.begin() + place, prompt.needle);
        prompt.context = fmt::format("{}", fmt::join(with_needle, " "));
        if (sentences.size() == 1 || count(prompt.context) <= options.n_tokens) return prompt;
        sentences.pop_back();
    }
}

void require_lengths_fit_context(std::span<const int64_t> lengths, int64_t n_new, int64_t context_length) {
    for (const int64_t length : lengths) {
        if (length <= context_length - n_new) continue;
        throw UsageError(
            fmt::format("--lengths {}: the model's context is {}, of which {} are for new tokens, so at most "
                        "{} are left for the prompt",
                        length, context_length, n_new, std::max<int64_t>(context_length - n_new, 0)));
    }
}

double string_match_score(std::string_view prediction, std::string_view answer) {
    return prediction.find(answer) != std::string_view::npos ? 1.0 : 0.0;
}

}  // namespace kvscope::engine
