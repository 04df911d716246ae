#include "analysis/runs/token_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/lower_case.h"
#include "common/utf8.h"

namespace kvscope::analysis {

TokenTexts join_tokens_into_text(std::vector<std::string> tokens) {
    TokenTexts out;
    static_cast<WholeText&>(out) = join_and_decode_tokens(tokens);
    out.tokens = std::move(tokens);
    return out;
}

std::string shown_token(std::string_view token) {
    std::string out;
    size_t at = 0;
    while (at < token.size()) {
        const auto [code, bytes, is_valid] = decode_utf8_character(token, at);
        if (!is_valid)
            out += fmt::format("⟨{:02X}⟩", static_cast<unsigned char>(token[at]));
        else if (code == ' ')
            out += "·";
        else if (code == '\n')
            out += "↵";
        else if (code == '\r')
            out += "␍";
        else if (code == '\t')
            out += "→";
        else if (code < 32 || code == 127)
            out += fmt::format("⟨{:02X}⟩", static_cast<uint32_t>(code));
        else
            out += token.substr(at, bytes);
        at += bytes;
    }
    return out;
}

std::vector<std::pair<int64_t, int64_t>> find_text(const WholeText& texts, std::string_view searched) {
    std::vector<std::pair<int64_t, int64_t>> places;
    if (searched.empty()) return places;
    const std::string text = lower_case(texts.text);
    const std::string wanted = lower_case(searched);
    const auto token_at = [&](size_t byte) {
        const auto after = std::upper_bound(texts.begins.begin(), texts.begins.end(), byte);
        return static_cast<int64_t>(after - texts.begins.begin()) - 1;
    };
    for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + wanted.size()))
        places.emplace_back(token_at(at), token_at(at + wanted.size() - 1));
    return places;
}

}  // namespace kvscope::analysis
