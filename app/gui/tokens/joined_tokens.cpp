#include "app/gui/tokens/joined_tokens.h"

#include <algorithm>

#include "analysis/tables/utf8.h"
#include "app/gui/drawing/shaped_text.h"

namespace kvscope::gui {

using analysis::utf8_character;
using analysis::Utf8Character;

namespace {

Utf8Character last_character(std::string_view text) {
    for (size_t at = text.size(); at-- > 0;) {
        const Utf8Character last = utf8_character(text, at);
        if (last.bytes > 0 || text.size() - at >= 4) return last;
    }
    return {};
}

}  // namespace

bool joins_next(const PromptText& prompt, uint32_t token) {
    const size_t border = prompt.begins[token + 1];
    if (border >= prompt.text.size() || border == prompt.begins[token]) return false;
    if (static_cast<unsigned char>(prompt.text[border]) < 0x80) return false;
    const std::string_view before = whole_characters(prompt, token, token);
    if (before.data() + before.size() > prompt.text.data() + border) return true;  // the border is inside a character
    const Utf8Character after = utf8_character(prompt.text, border);
    if (after.bytes == 0 || !joins_neighbours(after.code)) return false;
    const Utf8Character last = last_character(before);
    return last.bytes > 0 && (joins_neighbours(last.code) || (is_mark(after.code) && last.code > ' '));
}

bool is_set_as_one(const PromptText& prompt, uint32_t token) {
    const std::string_view text = whole_characters(prompt, token, token);
    for (size_t at = 0; at < text.size();) {
        const Utf8Character next = utf8_character(text, at);
        if (next.bytes > 1 && joins_neighbours(next.code)) return true;
        at += std::max<size_t>(next.bytes, 1);
    }
    return false;
}

JoinedTokens join_tokens(const PromptText& prompt, uint32_t first, uint32_t last) {
    JoinedTokens out;
    const std::string_view text = prompt.text;
    const size_t end = prompt.begins[last + 1];
    size_t at = prompt.begins[first];
    out.has_space = text[at] == ' ';
    if (out.has_space) ++at;
    uint32_t token = first;
    while (at < end) {
        const size_t bytes = std::max<size_t>(utf8_character(text.substr(0, end), at).bytes, 1);
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
