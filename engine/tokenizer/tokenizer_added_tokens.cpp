#include "engine/tokenizer/tokenizer_added_tokens.h"

#include "common/utf8.h"
#include "engine/tokenizer/tokenizer_characters.h"

namespace kvscope::checkpoint {
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

void AddedTokenFinder::cut(const Piece& piece, bool parse_special, std::vector<Piece>& out,
                           TokenizerLimits& limits) const {
    const std::string_view text = piece.text;
    size_t covered = 0;
    auto add_text = [&](size_t begin, size_t end) {
        if (begin < end) out.push_back({piece.part(begin, end), piece.at_start && begin == 0, -1});
    };

    for (size_t at = 0; at < text.size();) {
        if (!starts_[static_cast<uint8_t>(text[at])]) {
            ++at;
            continue;
        }
        limits.step();
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
                const size_t previous = offset_of_previous_character(text, begin);
                if (!is_white_space(decode_utf8_character(text, previous).code)) break;
                begin = previous;
            }
        }
        if (token.rstrip) {
            while (end < text.size()) {
                const Utf8Character step = decode_utf8_character(text, end);
                if (!is_white_space(step.code)) break;
                end += step.bytes;
            }
        }
        add_text(covered, begin);
        out.push_back({piece.part(begin, end), piece.at_start && begin == 0, token.id});
        covered = end;
    }
    add_text(covered, text.size());
}

}  // namespace kvscope::checkpoint
