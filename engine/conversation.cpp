#include "engine/conversation.h"

#include <fmt/format.h>

#include <utility>

#include "engine/decode.h"
#include "engine/error.h"
#include "engine/generate.h"

namespace kvscope::engine {

Conversation::Conversation(std::string label, RunCache cache, std::unique_ptr<policies::Policy> policy,
                           int64_t position, std::shared_ptr<const Prompt> prompt, std::string answer)
    : label_(std::move(label)),
      cache_(std::move(cache)),
      policy_(std::move(policy)),
      position_(position),
      prompt_(std::move(prompt)),
      answer_(std::move(answer)) {}

std::string Conversation::text_of(const Model& model, std::string_view question) const {
    if (question.find_first_not_of(" \t\r\n") == std::string_view::npos) throw UsageError("the question is empty");
    const bool templated = !prompt_->chat_template.empty();
    if (!prompt_->query_aware) {
        if (!templated) return std::string(question);
        const auto rendered = checkpoint::render_prompt(model.chat_template(), prompt_->context, question);
        return rendered.text.substr(rendered.question_begin);
    }
    if (!templated) return std::string("\n\n").append(question);
    const checkpoint::Message turns[] = {
        {"user", prompt_->content()}, {"assistant", answer_}, {"user", std::string(question)}};
    const std::string text = model.chat_template()->render(turns, true);
    if (!text.starts_with(prompt_->text))
        throw UsageError(
            "the model's chat template writes an earlier turn otherwise than the last one, so that the cache of the "
            "prompt is none of the longer conversation: run the prompt with --query-aware off, or without the "
            "template");
    return text.substr(prompt_->text.size());
}

Reply Conversation::ask(const Model& model, std::string_view question, const QuestionOptions& options,
                        Progress& progress, const std::function<void(int32_t)>& on_token) {
    Reply reply;
    reply.read = text_of(model, question);
    reply.read_ids = model.tokenizer().encode(reply.read, false, !prompt_->chat_template.empty());
    const auto n = static_cast<int64_t>(reply.read_ids.size());
    if (options.n_new < 1) throw UsageError("the number of tokens to generate must be at least 1");
    const int64_t limit = model.transformer().config().context_length;
    if (position_ + n + options.n_new > limit)
        throw UsageError(fmt::format(
            "the prompt's {} tokens, {} of the question and {} to generate are {} more than the model's context of {}: "
            "shorten the question or ask for fewer new tokens",
            position_, n, options.n_new, position_ + n + options.n_new - limit, limit));

    RunCache cache = cache_.clone();
    cache.reserve(n + options.n_new);
    progress.begin("question", n);
    Sequence reading{&cache, position_, 0, nullptr};
    const std::span<const int32_t> tokens = reply.read_ids;
    const at::Tensor residual = feed(model.transformer(), {&reading, 1}, {&tokens, 1});
    const at::Tensor logits = model.transformer().logits(residual.narrow(0, n - 1, 1));
    progress.advance(n);

    // As in a run, a policy that acts while decoding acts on the answer alone.
    Sequence answering{&cache, reading.position, 0, policy_->acts_while_decoding() ? policy_.get() : nullptr};
    const std::vector<float> first(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
    const auto generations = generate(model.transformer(), {&answering, 1}, {&first, 1}, options.n_new,
                                      options.sampling, model.stop_ids(options.ignore_eos), progress,
                                      on_token ? [&](size_t, int32_t id) { on_token(id); } : OnToken());
    reply.ids = generations[0].ids;
    reply.text = model.answer_text(reply.ids);
    return reply;
}

}  // namespace kvscope::engine
