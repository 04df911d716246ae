#include "app/gui/prompt_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cctype>

#include "app/gui/session.h"

namespace kvscope::gui {
namespace {

std::string lowered(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

PromptText read_prompt(const trace::Reader& reader, int prompt) {
    PromptText out;
    out.ids = reader.token_ids(prompt);
    out.tokens = reader.token_text(prompt);
    for (const auto& token : out.tokens) {
        out.begins.push_back(out.text.size());
        out.text += token;
        out.shown.push_back(shown_token(token));
    }
    out.begins.push_back(out.text.size());
    return out;
}

}  // namespace

std::string shown_token(std::string_view token) {
    std::string out;
    size_t at = 0;
    while (at < token.size()) {
        utf8proc_int32_t code = 0;
        const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(token.data()) + at,
                                             static_cast<utf8proc_ssize_t>(token.size() - at), &code);
        if (length <= 0) {
            out += fmt::format("⟨{:02X}⟩", static_cast<unsigned char>(token[at]));
            ++at;
            continue;
        }
        if (code == ' ')
            out += "·";
        else if (code == '\n')
            out += "↵";
        else if (code == '\r')
            out += "␍";
        else if (code == '\t')
            out += "→";
        else if (code < 32 || code == 127)
            out += fmt::format("⟨{:02X}⟩", code);
        else
            out += token.substr(at, static_cast<size_t>(length));
        at += static_cast<size_t>(length);
    }
    return out;
}

std::shared_ptr<const PromptText> prompt_text(Session& session, const Document& document) {
    const auto reader = document.file();
    const int prompt = document.prompt;
    if (prompt >= reader->n_prompts()) return nullptr;
    const std::string stamp = fmt::format("{}/{}", document.stamp(), prompt);
    return session.tasks
        .ask<PromptText>(fmt::format("prompt text {}", document.id()), stamp,
                         [reader, prompt] { return read_prompt(*reader, prompt); })
        .value;
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
    const auto answer =
        session.tasks.ask<Spans>(fmt::format("marks {}", document.id()),
                                 fmt::format("{}/{}/{}", document.stamp(), document.prompt, session.mark),
                                 [prompt, mark = session.mark] { return find_spans(*prompt, mark); });
    return answer.value && answer.current ? *answer.value : Spans{};
}

}  // namespace kvscope::gui
