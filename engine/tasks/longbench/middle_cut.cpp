#include "engine/tasks/longbench/middle_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "engine/common/engine_error.h"

namespace kvscope::engine::longbench {
namespace {

constexpr int64_t n_template_tokens = 128;  // more than the chat templates of the supported families add
constexpr int64_t smallest_max_length = 2;

}  // namespace

TwoPartPrompt cut_in_the_middle(const SampleRequest& request, TwoPartPrompt prompt, int64_t max_length, Halves halves) {
    const auto& tokenizer = request.tokenizer;
    auto ids = tokenizer.encode(prompt.context + prompt.question, true, true, request.stop);
    const auto n = static_cast<int64_t>(ids.size());
    if (n <= max_length) return prompt;
    const auto decode = [&](std::span<const int32_t> some) { return tokenizer.decode(some, true, request.stop); };
    const int64_t n_first = max_length / 2;
    const int64_t n_second = halves == Halves::decoded_together ? max_length - n_first : n_first;
    const std::string first = decode(std::span(ids).first(static_cast<size_t>(n_first)));
    std::string text;
    if (halves == Halves::decoded_apart) {
        text = first + decode(std::span(ids).last(static_cast<size_t>(n_second)));
    } else {
        ids.erase(ids.begin() + n_first, ids.end() - n_second);
        text = decode(ids);
    }
    size_t begin = std::min(first.size(), text.size());  // of the question
    if (text.size() - begin >= prompt.question.size() && text.ends_with(prompt.question))
        begin = text.size() - prompt.question.size();
    const auto continues_character = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
    while (begin > 0 && begin < text.size() && continues_character(begin)) --begin;
    return {text.substr(0, begin), text.substr(begin)};
}

policies::Parameter max_length_parameter() {
    return policies::automatic_integer_parameter(
        "max_length", "the model's context, minus the answer and 128 tokens for the chat template",
        {.low = static_cast<double>(smallest_max_length)},
        "Largest number of tokens of a prompt, without the chat template; the middle of a longer prompt is removed");
}

int64_t max_length_of(const SampleRequest& request, int64_t n_new) {
    if (const auto asked = request.options.values.automatic_integer("max_length")) return *asked;
    const int64_t length = request.context_length - n_new - n_template_tokens;
    if (length < smallest_max_length)
        throw UsageError(fmt::format(
            "the model's context of {} tokens has no space for a prompt, {} answer tokens and {} tokens of a "
            "chat template: use a model with a longer context, fewer answer tokens (-n), or --max-length",
            request.context_length, n_new, n_template_tokens));
    return length;
}

int64_t n_new_of(const SampleRequest& request, int64_t of_set) {
    return request.n_new != request.task.n_new ? request.n_new : of_set;
}

}  // namespace kvscope::engine::longbench
