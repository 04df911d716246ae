#include "analysis/token_texts.h"

#include <algorithm>
#include <utility>

#include "analysis/tables/utf8.h"

namespace kvscope::analysis {

TokenTexts token_texts(std::vector<std::string> tokens) {
    TokenTexts out;
    static_cast<WholeText&>(out) = whole_text(tokens);
    out.tokens = std::move(tokens);
    return out;
}

std::string_view whole_characters(const TokenTexts& texts, size_t first, size_t last) {
    const std::string_view text = texts.text;
    const size_t begin = texts.begins[first];
    const size_t end = texts.begins[last + 1];
    if (begin == end) return text.substr(begin, 0);
    const size_t from = character_begin(text, begin);
    const size_t last_character = character_begin(text, end - 1);
    return text.substr(from, std::max(last_character + utf8_character(text, last_character).bytes, end) - from);
}

}  // namespace kvscope::analysis
