#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/tasks/ruler/word_lists.h"

namespace kvscope::engine::ruler {

struct RulerPrompt {
    std::string context;   ///< text before the question, with the line breaks between them
    std::string question;  ///< with the beginning of the answer, RULER's `answer_prefix`
    std::vector<std::string> answers{};
    std::vector<std::pair<size_t, size_t>> spans{};  ///< begin and end of the bytes of `context` with the answer
    int64_t length = 0;                              ///< tokens of the prompt and of the longest answer

    [[nodiscard]] std::string text() const { return context + question; }
};

/// The settings of one subset that all its prompts share.
struct SubsetRequest {
    std::string name;  ///< "niah_single_1"
    int64_t n_new = 0;
    int64_t n_samples = 0;
    uint32_t seed = 0;
    const Files& files;  ///< by file name for the word lists, otherwise by the option that names the file
    std::function<std::string(const std::string& option)> file_name;  ///< for messages
    std::function<int64_t(const std::string& text)> count_tokens;
    std::stop_token stop = {};
};

/// Makes the prompts for one `max_seq_length`, the greatest number of tokens of a prompt and its answer. A prompt also
/// depends on the prompts before it, because one random generator makes all. @throws UsageError; Stopped
using MakePrompts = std::function<std::vector<RulerPrompt>(int64_t length)>;

/// Search for the number of sentences, words or documents with which a prompt has the requested length.
class SizeSearch {
 public:
    /// Makes a prompt with new random numbers. Returns nullopt where RULER's script raises an exception.
    using Draw = std::function<std::optional<RulerPrompt>(int64_t size)>;

    /// Whether the searched text is a prompt of a length in `--lengths`, or a part of all prompts.
    enum class Text { prompt, example };

    SizeSearch(const SubsetRequest& request, int64_t length, int64_t n_new, int64_t step, Text text = Text::prompt)
        : request_(request), length_(length), n_new_(n_new), step_(step), text_(text) {}

    /// Returns the tokens of a prompt of this size, without the answer.
    [[nodiscard]] int64_t tokens_at(int64_t size, const Draw& draw) const;
    /// Returns the greatest size from `step` to `upper` whose prompt fits, by binary search. Returns `step` if none is
    /// found. @param n_more tokens that later precede the prompt
    [[nodiscard]] int64_t greatest_fitting(int64_t upper, const Draw& draw, int64_t n_more = 0) const;
    /// Returns three times the number that is expected to fit, after a prompt of size `step`; at least 2 `step`.
    [[nodiscard]] int64_t upper_bound(const Draw& draw) const;
    /// Returns a prompt that fits, and reduces the size by `step` for each prompt that does not.
    [[nodiscard]] RulerPrompt draw_fitting(int64_t size, const Draw& draw) const;

 private:
    const SubsetRequest& request_;
    int64_t length_, n_new_, step_;
    Text text_;
};

/// Returns the text with the n-th "{}" replaced by the n-th value.
[[nodiscard]] std::string filled(std::string_view text, std::initializer_list<std::string_view> values);

[[nodiscard]] std::string joined(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace kvscope::engine::ruler
