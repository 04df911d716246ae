#include "engine/classifier/prompt_probabilities.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "engine/common/engine_error.h"

namespace kvscope::engine {

namespace {

/// A prompt's text and the range of the user's context in it.
struct ContextSpan {
    std::string text;              ///< text of all tokens
    std::vector<size_t> token_at;  ///< (tokens + 1) offset of each token in `text`
    size_t begin = 0, end = 0;     ///< range between the chat template's prefix and the question or suffix
};

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// Returns how many characters at the start of a text match `expected`, or nullopt. White space may differ.
template <typename Iterator, typename Expected>
std::optional<size_t> length_of(Iterator begin, Iterator end, Expected expected, Expected expected_end) {
    auto at = begin;
    while (expected != expected_end && std::any_of(expected, expected_end, [](char c) { return !is_space(c); })) {
        if (is_space(*expected)) {
            ++expected;
            continue;
        }
        while (at != end && is_space(*at)) ++at;
        if (at == end || *at != *expected) return std::nullopt;
        ++at;
        ++expected;
    }
    while (expected != expected_end && at != end && *at == *expected) ++at, ++expected;
    return static_cast<size_t>(at - begin);
}

/// Finds the context by rendering the chat template with another text. @throws RunError if the prompt does not match
ContextSpan find_context_in_prompt(const Model& model, const Prompt& prompt, const std::stop_token& stop) {
    constexpr std::string_view stand_in = "kvscope";
    std::optional<checkpoint::ChatTemplate> chat_template;
    if (!prompt.chat_template.empty())
        chat_template.emplace(
            prompt.chat_template,
            model.chat_template() ? model.chat_template()->special_tokens() : std::map<std::string, std::string>(),
            "the prompt's chat template", "", stop);
    const std::string rendered =
        checkpoint::render_prompt(chat_template, stand_in, prompt.question, prompt.rendered_at, stop, prompt.separator)
            .text;
    const size_t at = rendered.rfind(
        prompt.question.empty() ? std::string(stand_in) : std::string(stand_in) + prompt.separator + prompt.question);
    if (at == std::string::npos)
        throw RunError("the chat template changes the user's text, so that the text cannot be found in the prompt");
    const std::string_view before = std::string_view(rendered).substr(0, at);
    const std::string_view after = std::string_view(rendered).substr(at + stand_in.size());

    ContextSpan span;
    for (const int32_t id : prompt.ids) {
        span.token_at.push_back(span.text.size());
        span.text += model.tokenizer().piece(id, stop);
    }
    span.token_at.push_back(span.text.size());
    // Without a chat template, the tokenizer may add a first token (BOS), whose text is not part of the prompt.
    const size_t own =
        prompt.chat_template.empty() && model.tokenizer().is_special(prompt.ids[0]) ? span.token_at[1] : 0;
    const auto head =
        length_of(span.text.begin() + static_cast<std::ptrdiff_t>(own), span.text.end(), before.begin(), before.end());
    const auto tail = length_of(span.text.rbegin(), span.text.rend(), after.rbegin(), after.rend());
    if (!head || !tail || own + *head + *tail > span.text.size())
        throw RunError(
            "the user's text cannot be found in this prompt, because its chat template now writes different text. Run "
            "without the chat template.");
    span.begin = own + *head;
    span.end = span.text.size() - *tail;
    return span;
}

}  // namespace

std::vector<float> prompt_probabilities(const Model& model, const Prompt& prompt, const TokenClassifier& classifier,
                                        const policies::TokenClassifierSettings& how, Progress& progress) {
    const ContextSpan span = find_context_in_prompt(model, prompt, progress.stop_token());
    const auto context = std::string_view(span.text).substr(span.begin, span.end - span.begin);
    const std::vector<float> of_bytes = classifier.byte_probabilities(context, how, progress);
    std::vector<float> probabilities(static_cast<size_t>(prompt.n_visible()), std::numeric_limits<float>::quiet_NaN());
    for (size_t i = 0; i < probabilities.size(); ++i) {
        const size_t begin = span.token_at[i], end = span.token_at[i + 1];
        if (begin < span.begin || end > span.end || model.tokenizer().is_special(prompt.ids[i])) continue;
        probabilities[i] = mean_byte_probability(of_bytes, begin - span.begin, end - span.begin);
    }
    return probabilities;
}

}  // namespace kvscope::engine
