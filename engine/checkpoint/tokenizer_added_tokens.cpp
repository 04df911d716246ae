#include "engine/checkpoint/tokenizer_added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

#include "engine/checkpoint/tokenizer_utf8.h"

namespace kvscope::checkpoint {
namespace {

/// Unicode's \w: Alphabetic, marks, decimal digits, connectors and joiners.
bool is_word(char32_t c) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_PC:
            return true;
        default:
            break;
    }
    const bool circled_letter = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                                (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
    return circled_letter || c == 0x200C || c == 0x200D;
}

/// Where the character before `end` begins.
size_t previous_character(std::string_view text, size_t end) {
    size_t at = end - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
    return at;
}

bool ends_with_word(std::string_view text) {
    return !text.empty() && is_word(utf8_step(text, previous_character(text, text.size())).code_point);
}

bool starts_with_word(std::string_view text) { return !text.empty() && is_word(utf8_step(text, 0).code_point); }

}  // namespace

void AddedTokenFinder::add(const AddedToken& token, std::string_view pattern) {
    if (pattern.empty()) return;
    uint32_t node = 0;
    for (const char byte : pattern) {
        const auto [found, is_new] = edges_.emplace(edge(node, byte), static_cast<uint32_t>(nodes_.size()));
        if (is_new) nodes_.emplace_back();
        node = found->second;
    }
    starts_[static_cast<uint8_t>(pattern.front())] = true;
    if (nodes_[node].token >= 0) return;
    nodes_[node].token = static_cast<int32_t>(tokens_.size());
    tokens_.push_back(token);
}

void AddedTokenFinder::cut(const Piece& piece, bool parse_special, std::vector<Piece>& out) const {
    const std::string_view text = piece.text;
    size_t covered = 0;
    auto add_text = [&](size_t begin, size_t end) {
        if (begin < end) out.push_back({text.substr(begin, end - begin), piece.at_start && begin == 0, -1});
    };

    for (size_t at = 0; at < text.size();) {
        if (!starts_[static_cast<uint8_t>(text[at])]) {
            ++at;
            continue;
        }
        int32_t longest = -1;
        size_t end = at;
        uint32_t node = 0;
        for (size_t i = at; i < text.size(); ++i) {
            const auto next = edges_.find(edge(node, text[i]));
            if (next == edges_.end()) break;
            node = next->second;
            if (nodes_[node].token >= 0) {
                longest = nodes_[node].token;
                end = i + 1;
            }
        }
        if (longest < 0) {
            ++at;
            continue;
        }
        const AddedToken& token = tokens_[longest];
        size_t begin = at;
        at = end;
        if (token.special && !parse_special) continue;
        if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
            continue;
        if (token.lstrip) {
            while (begin > covered) {
                const size_t previous = previous_character(text, begin);
                if (!is_white_space(utf8_step(text, previous).code_point)) break;
                begin = previous;
            }
        }
        if (token.rstrip) {
            while (end < text.size()) {
                const Utf8Step step = utf8_step(text, end);
                if (!is_white_space(step.code_point)) break;
                end += step.length;
            }
        }
        add_text(covered, begin);
        out.push_back({text.substr(begin, end - begin), piece.at_start && begin == 0, token.id});
        covered = end;
    }
    add_text(covered, text.size());
}

}  // namespace kvscope::checkpoint
