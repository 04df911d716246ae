#include "engine/decode/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/decode/decode.h"
#include "engine/decode/decode_answers.h"
#include "engine/device/catch_single_run_failure.h"

namespace kvscope::engine {

Conversation::Conversation(std::string label, RunCache cache, policies::CreatedPolicy policy, int64_t position,
                           std::shared_ptr<const Prompt> prompt, std::string answer)
    : label_(std::move(label)),
      cache_(std::move(cache)),
      policy_(std::move(policy)),
      position_(position),
      prompt_(std::move(prompt)),
      answer_(std::move(answer)) {}

Conversation::Text Conversation::text_of(const Model& model, std::string_view question,
                                         const std::stop_token& stop) const {
    if (question.find_first_not_of(" \t\r\n") == std::string_view::npos) throw UsageError("the question is empty");
    const bool templated = !prompt_->chat_template.empty();
    if (templated && prompt_->context.empty())
        throw UsageError(
            "the model's chat template does not produce the prompt's recorded text, "
            "so that another question cannot be inserted: run the prompt again");
    const auto now = prompt_->rendered_at;
    if (!prompt_->query_aware) {
        auto rendered = checkpoint::render_prompt(templated ? model.chat_template() : std::nullopt, prompt_->context,
                                                  question, now, stop);
        return {std::move(rendered.text), rendered.question_begin};
    }
    if (!templated) return {fmt::format("{}\n\n{}", prompt_->text, question), prompt_->text.size()};
    const checkpoint::Message turns[] = {
        {"user", prompt_->content()}, {"assistant", answer_}, {"user", std::string(question)}};
    std::string text = model.chat_template()->render(turns, true, now, stop);
    if (!text.starts_with(prompt_->text))
        throw UsageError(
            "the model's chat template formats earlier turns differently from the last turn, so the "
            "prompt's cache cannot continue a conversation: hide the question from policies (query-aware off), or run "
            "the prompt without the chat template");
    return {std::move(text), prompt_->text.size()};
}

int64_t Conversation::read_question(const Model& model, std::string_view question, int64_t n_new, Reply& reply,
                                    const std::stop_token& stop) const {
    const Text text = text_of(model, question, stop);
    const auto cached = std::span<const int32_t>(prompt_->ids).first(static_cast<size_t>(prompt_->n_visible()));
    const auto begins_with_cached = [&](const checkpoint::Encoding& of) {
        return of.ids.size() >= cached.size() && std::equal(cached.begin(), cached.end(), of.ids.begin());
    };
    const auto end_of_cached = [&](const checkpoint::Encoding& of) -> size_t {
        const auto last = of.ends.begin() + static_cast<std::ptrdiff_t>(cached.size());
        return cached.empty() ? 0 : *std::max_element(of.ends.begin(), last);
    };
    if (const auto encoding = encode_like_prompt(model, *prompt_, text.whole, stop); begins_with_cached(encoding)) {
        reply.read = text.whole.substr(end_of_cached(encoding));
        reply.read_ids.assign(encoding.ids.begin() + static_cast<std::ptrdiff_t>(cached.size()), encoding.ids.end());
    } else {
        // If one token joins the context and the question, the cached tokens end before the context does.
        const auto own = encode_like_prompt(model, *prompt_, prompt_->text, stop);
        const size_t begin = begins_with_cached(own) ? std::min(end_of_cached(own), text.begin) : text.begin;
        reply.read = text.whole.substr(begin);
        reply.read_ids = model.tokenizer().encode(reply.read, false, prompt_->parses_special, stop);
        reply.remark =
            "The question was tokenized separately from the context, because the tokens of the whole text do not begin "
            "with the cached tokens.";
    }
    if (reply.read_ids.empty()) throw UsageError("the question has no tokens: write another question");
    require_token_embeddings(model, reply.read_ids, "the question");
    const int64_t limit = model.config().context_length;
    const auto n = static_cast<int64_t>(reply.read_ids.size());
    if (n_new > limit - position_ - n)
        throw UsageError(
            fmt::format("the prompt's {} tokens, the question's {} and {} new tokens exceed the model's context of "
                        "{}: shorten the question or ask for fewer new tokens",
                        position_, n, n_new, limit));
    return n;
}

std::vector<Reply> ask_all_runs(const Model& model, std::span<Conversation* const> conversations,
                                std::string_view question, const QuestionOptions& options, Progress& progress,
                                const std::function<void(size_t, int32_t)>& on_token) {
    if (options.n_new < 1) throw UsageError("the number of tokens to generate must be at least 1");
    std::vector<Reply> replies(conversations.size());
    std::vector<size_t> asked;
    std::vector<RunCache> caches;
    std::vector<Sequence> reading;
    std::vector<std::span<const int32_t>> tokens;
    for (size_t i = 0; i < conversations.size(); ++i) {
        const Conversation& to = *conversations[i];
        Reply& reply = replies[i];
        int64_t n = 0;
        try {
            n = to.read_question(model, question, options.n_new, reply, progress.stop_token());
        } catch (const UsageError& error) {
            reply.error = error.what();
            reply.refused = true;
            continue;
        }
        reply.error = catch_single_run_failure([&] { caches.push_back(to.cache_.clone(n + options.n_new)); });
        if (!reply.error.empty()) continue;
        asked.push_back(i);
        tokens.emplace_back(reply.read_ids);
    }
    if (asked.empty()) return replies;

    for (size_t k = 0; k < asked.size(); ++k)
        reading.push_back({&caches[k], conversations[asked[k]]->position_, 0, {}, conversations[asked[k]]->label_});
    const at::Tensor logits =
        model.transformer().logits(read_given_tokens(model.transformer(), reading, tokens, progress));
    std::vector<std::vector<float>> first;
    for (int64_t k = 0; k < logits.size(0); ++k) {
        const float* row = logits.const_data_ptr<float>() + k * logits.size(1);
        first.emplace_back(row, row + logits.size(1));
    }

    std::vector<Sequence> answering;
    for (size_t k = 0; k < asked.size(); ++k) {
        const AfterAttention acting = after_attention_of(conversations[asked[k]]->policy_);
        answering.push_back({&caches[k], reading[k].position, 0, acting, reading[k].run,
                             reading[k].failed() ? "reading the question: " + reading[k].error : std::string(),
                             switching_of(acting)});
    }
    const auto generations = decode_answers(
        model.transformer(), answering, first, options.n_new, options.sampling, model.stop_ids(options.ignore_eos),
        progress, on_token ? [&](size_t k, int32_t id) { on_token(asked[k], id); } : OnToken());
    for (size_t k = 0; k < asked.size(); ++k) {
        replies[asked[k]].error = generations[k].error;
        replies[asked[k]].ids = generations[k].ids;
        replies[asked[k]].text = model.answer_text(generations[k].ids, progress.stop_token());
    }
    return replies;
}

}  // namespace kvscope::engine
