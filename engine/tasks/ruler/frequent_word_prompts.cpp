#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/stopped.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/ruler/python_random.h"
#include "engine/tasks/ruler/subsets.h"

namespace kvscope::engine::ruler {
namespace {

constexpr std::string_view text_begin =
    "Read the following coded text and track the frequency of each coded word. Find the three most frequently appeared "
    "coded words. ";
constexpr std::string_view text_question =
    "Question: Do not provide any explanation. Please ignore the dots '....'. What are the three most frequently "
    "appeared words in the above coded text? Answer: According to the coded text above, the three most frequently "
    "appeared words are:";
constexpr std::string_view lower_letters = "abcdefghijklmnopqrstuvwxyz";
constexpr int letters_of_word = 6;
constexpr double exponent = 2;
constexpr double zeta_of_exponent = 1.6449340668482264;  // pi^2 / 6
constexpr int64_t tokens_per_word = 50;                  // of the vocabulary
constexpr int64_t fewest_words = 4;                      // noise and three answers

/// Words with the frequencies of a zeta distribution. The most frequent word is noise.
class CodedText {
 public:
    CodedText(const SubsetRequest& request, int64_t length)
        : request_(request), length_(length), limit_(length - request.n_new), random_(request.seed) {
        if (limit_ / tokens_per_word < fewest_words)
            throw UsageError(fmt::format(
                "--lengths: expected at least {} tokens for RULER's fwe, found {}: use a longer length, or omit this "
                "subset",
                fewest_words * tokens_per_word + request.n_new, length));
    }

    std::vector<RulerPrompt> prompts() {
        draw_vocabulary();
        int64_t n_words = limit_ / letters_of_word;
        while (tokens_of(n_words) < limit_) n_words += step();
        n_words -= step();
        std::vector<RulerPrompt> all;
        for (int64_t i = 0; i < request_.n_samples; ++i) {
            draw_vocabulary();
            int64_t n = n_words;
            for (int64_t tokens = tokens_of(n); tokens > limit_; tokens = tokens_of(n)) {
                if (n <= 0)
                    throw UsageError(fmt::format(
                        "--lengths: expected at least {} tokens for the question and the answer of RULER's fwe, found "
                        "{}: use a longer length, or omit this subset",
                        tokens + request_.n_new, length_));
                n -= step();
            }
            RulerPrompt prompt = prompt_of(n);
            prompt.length = request_.count_tokens(prompt.text()) + request_.n_new;
            all.push_back(std::move(prompt));
        }
        return all;
    }

 private:
    [[nodiscard]] int64_t step() const { return limit_ / 32; }

    void draw_vocabulary() {
        const auto n = static_cast<size_t>(limit_ / tokens_per_word);
        std::set<std::string> distinct;
        for (size_t i = 0; i < n || distinct.size() < n; ++i)
            distinct.insert(random_.letters(lower_letters, letters_of_word));
        vocabulary_.assign(distinct.begin(), distinct.end());
        PythonRandom(request_.seed).shuffle(vocabulary_);
        vocabulary_[0] = "...";
    }

    [[nodiscard]] RulerPrompt prompt_of(int64_t n_words) const {
        std::vector<std::string> words;
        for (size_t i = 0; i < vocabulary_.size(); ++i) {
            const double count =
                static_cast<double>(n_words) * std::pow(static_cast<double>(i + 1), -exponent) / zeta_of_exponent;
            for (int64_t j = 0; j < static_cast<int64_t>(count); ++j) words.push_back(vocabulary_[i]);
        }
        PythonRandom(request_.seed).shuffle(words);
        return {.context = fmt::format("{}{}\n", text_begin, joined(words, " ")),
                .question = std::string(text_question),
                .answers = {vocabulary_.begin() + 1, vocabulary_.begin() + 4}};
    }

    [[nodiscard]] int64_t tokens_of(int64_t n_words) const {
        throw_if_stopped(request_.stop);
        return request_.count_tokens(prompt_of(n_words).text());
    }

    const SubsetRequest& request_;
    int64_t length_, limit_;
    PythonRandom random_;
    std::vector<std::string> vocabulary_;
};

}  // namespace

MakePrompts frequent_word_prompts(const SubsetRequest& request) {
    return [&request](int64_t length) { return CodedText(request, length).prompts(); };
}

}  // namespace kvscope::engine::ruler
