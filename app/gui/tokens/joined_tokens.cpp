#include "app/gui/tokens/joined_tokens.h"

#include "common/utf8.h"

namespace kvscope::gui {

JoinedTokens join_tokens(const PromptText& prompt, uint32_t first, uint32_t last) {
    JoinedTokens out;
    const std::string_view text = prompt.text;
    const size_t end = prompt.begins[last + 1];
    size_t at = prompt.begins[first];
    out.has_space = text[at] == ' ';
    if (out.has_space) ++at;
    uint32_t token = first;
    while (at < end) {
        const size_t bytes = decode_utf8_character(text.substr(0, end), at).bytes;
        const std::string shown = shown_token(text.substr(at, bytes));
        for (; token <= last && prompt.begins[token + 1] <= at + bytes; ++token) {
            const size_t share = shown.size() * (prompt.begins[token + 1] - at) / bytes;
            out.ends.push_back(static_cast<uint32_t>(out.text.size() + share));
        }
        out.text += shown;
        at += bytes;
    }
    return out;
}

}  // namespace kvscope::gui
