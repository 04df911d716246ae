#include "app/gui/view_data/prompt_text.h"

#include <fmt/format.h>

#include "app/gui/session/session.h"
#include "common/unique_id.h"

namespace kvscope::gui {
PromptText make_prompt_text_from_tokens(std::vector<int32_t> ids, std::vector<std::string> tokens) {
    PromptText out;
    static_cast<analysis::TokenTexts&>(out) = analysis::join_tokens_into_text(std::move(tokens));
    out.ids = std::move(ids);
    out.number = unique_id();
    for (const auto& token : out.tokens) out.shown.push_back(analysis::shown_token(token));
    return out;
}

TaskResult<PromptText> ask_prompt_text(Session& session, const Document& document) {
    const auto reader = document.file();
    const int prompt = document.prompt;
    if (prompt >= reader->n_prompts()) return {};
    const std::string stamp = fmt::format("{}/{}", document.stamp(), prompt);
    static const TaskSlot<PromptText> slot;
    auto answer =
        session.tasks.ask(slot, std::to_string(document.id()), stamp, [reader, prompt](const std::stop_token& stop) {
            const trace::Reader stoppable = reader->with_stop(stop);
            PromptText text = make_prompt_text_from_tokens(stoppable.token_ids(prompt), stoppable.token_text(prompt));
            text.prompt = prompt;
            return text;
        });
    if (answer.value && answer.value->prompt != prompt) answer.value.reset();
    return answer;
}

std::shared_ptr<const PromptText> prompt_text(Session& session, const Document& document) {
    return ask_prompt_text(session, document).value;
}

namespace {

std::shared_ptr<const TokenSpans> spans_of(Session& session, const Document& document, const TaskSlot<TokenSpans>& slot,
                                           const std::string& text) {
    if (text.empty()) return nullptr;
    const auto prompt = prompt_text(session, document);
    if (!prompt) return nullptr;
    const auto answer =
        session.tasks.ask(slot, std::to_string(document.id()), fmt::format("{}/{}", prompt->number, text),
                          [prompt, text] { return analysis::find_text(*prompt, text); });
    return answer.current ? answer.value : nullptr;
}

}  // namespace

TokenSpans marked_spans(Session& session, const Document& document) {
    static const TaskSlot<TokenSpans> slot;
    const auto spans = spans_of(session, document, slot, session.mark);
    return spans ? *spans : TokenSpans{};
}

std::shared_ptr<const TokenSpans> searched_spans(Session& session, const Document& document) {
    static const TaskSlot<TokenSpans> slot;
    return spans_of(session, document, slot, session.search);
}

}  // namespace kvscope::gui
