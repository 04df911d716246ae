#include "app/gui/session/prompt_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "app/gui/session/session.h"

namespace kvscope::gui {
namespace {

std::string lowered(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

}  // namespace

PromptText make_prompt_text(std::vector<int32_t> ids, std::vector<std::string> tokens) {
    PromptText out;
    static_cast<analysis::TokenTexts&>(out) = analysis::token_texts(std::move(tokens));
    out.ids = std::move(ids);
    out.number = own_number();
    for (const auto& token : out.tokens) out.shown.push_back(analysis::shown_token(token));
    return out;
}

std::shared_ptr<const PromptText> prompt_text(Session& session, const Document& document) {
    const auto reader = document.file();
    const int prompt = document.prompt;
    if (prompt >= reader->n_prompts()) return nullptr;
    const std::string stamp = fmt::format("{}/{}", document.stamp(), prompt);
    static const TaskSlot<PromptText> slot;
    const auto answer = session.tasks.ask(slot, std::to_string(document.id()), stamp, [reader, prompt] {
        PromptText text = make_prompt_text(reader->token_ids(prompt), reader->token_text(prompt));
        text.prompt = prompt;
        return text;
    });
    return answer.value && answer.value->prompt == prompt ? answer.value : nullptr;
}

std::vector<std::pair<int64_t, int64_t>> find_spans(const PromptText& prompt, std::string_view search) {
    std::vector<std::pair<int64_t, int64_t>> spans;
    if (search.empty()) return spans;
    const std::string text = lowered(prompt.text);
    const std::string wanted = lowered(search);
    const auto token_at = [&](size_t place) {
        const auto after = std::upper_bound(prompt.begins.begin(), prompt.begins.end(), place);
        return static_cast<int64_t>(after - prompt.begins.begin()) - 1;
    };
    for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + wanted.size()))
        spans.emplace_back(token_at(at), token_at(at + wanted.size() - 1));
    return spans;
}

std::vector<std::pair<int64_t, int64_t>> marked_spans(Session& session, const Document& document) {
    using Spans = std::vector<std::pair<int64_t, int64_t>>;
    if (session.mark.empty()) return {};
    const auto prompt = prompt_text(session, document);
    if (!prompt) return {};
    static const TaskSlot<Spans> slot;
    const auto answer =
        session.tasks.ask(slot, std::to_string(document.id()), fmt::format("{}/{}", prompt->number, session.mark),
                          [prompt, mark = session.mark] { return find_spans(*prompt, mark); });
    return answer.value && answer.current ? *answer.value : Spans{};
}

}  // namespace kvscope::gui
