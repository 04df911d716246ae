#include "analysis/tables/bidirectional_text.h"

#include <fribidi.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "common/utf8.h"

namespace kvscope::analysis {
namespace {

struct Paragraph {
    std::vector<FriBidiChar> characters;
    std::vector<size_t> begins;  ///< byte at which each character begins
    bool is_turned = false;      ///< contains right-to-left text

    void clear() {
        characters.clear();
        begins.clear();
        is_turned = false;
    }
};

struct ByteLevels {
    uint8_t own = 0, paragraph = 0;
};

void find_levels(const Paragraph& paragraph, size_t end, std::vector<ByteLevels>& of_byte) {
    if (!paragraph.is_turned) return;
    const auto n = static_cast<FriBidiStrIndex>(paragraph.characters.size());
    std::vector<FriBidiCharType> types(paragraph.characters.size());
    std::vector<FriBidiBracketType> brackets(paragraph.characters.size());
    std::vector<FriBidiLevel> levels(paragraph.characters.size());
    fribidi_get_bidi_types(paragraph.characters.data(), n, types.data());
    fribidi_get_bracket_types(paragraph.characters.data(), n, types.data(), brackets.data());
    FriBidiParType direction = FRIBIDI_PAR_ON;
    if (!fribidi_get_par_embedding_levels_ex(types.data(), brackets.data(), n, &direction, levels.data())) return;
    for (size_t i = 0; i < levels.size(); ++i) {
        const size_t next = i + 1 < levels.size() ? paragraph.begins[i + 1] : end;
        for (size_t byte = paragraph.begins[i]; byte < next; ++byte)
            of_byte[byte] = {static_cast<uint8_t>(std::max<FriBidiLevel>(levels[i], 0)),
                             static_cast<uint8_t>(FRIBIDI_IS_RTL(direction) ? 1 : 0)};
    }
}

}  // namespace

ReadingLevels compute_bidirectional_levels(const WholeText& whole) {
    const std::string_view text = whole.text;
    std::vector<ByteLevels> of_byte;
    Paragraph paragraph;
    for (size_t at = 0; at < text.size();) {
        const auto [character, bytes, is_valid] = decode_utf8_character(text, at);
        paragraph.characters.push_back(character);
        paragraph.begins.push_back(at);
        if (character >= 0x590 && FRIBIDI_IS_RTL(fribidi_get_bidi_type(character))) paragraph.is_turned = true;
        at += bytes;
        if (character != '\n' && at < text.size()) continue;
        if (paragraph.is_turned && of_byte.empty()) of_byte.resize(text.size());
        find_levels(paragraph, at, of_byte);
        paragraph.clear();
    }
    if (of_byte.empty()) return {};
    ReadingLevels levels;
    for (size_t token = 0; token + 1 < whole.begins.size(); ++token) {
        size_t byte = whole.begins[token];
        const size_t end = whole.begins[token + 1];
        while (byte + 1 < end && (text[byte] == ' ' || text[byte] == '\t')) ++byte;
        levels.tokens.push_back(byte < end ? of_byte[byte].own : uint8_t{0});
        levels.paragraphs.push_back(whole.begins[token] < end ? of_byte[whole.begins[token]].paragraph : uint8_t{0});
    }
    return levels;
}

std::vector<size_t> visual_order(const std::vector<uint8_t>& levels) {
    std::vector<size_t> order(levels.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const uint8_t highest = levels.empty() ? uint8_t{0} : *std::max_element(levels.begin(), levels.end());
    for (uint8_t level = highest; level > 0; --level) {
        const auto is_deep = [&](size_t piece) { return levels[piece] >= level; };
        for (auto begin = order.begin(); begin != order.end();) {
            begin = std::find_if(begin, order.end(), is_deep);
            const auto end = std::find_if_not(begin, order.end(), is_deep);
            std::reverse(begin, end);
            begin = end;
        }
    }
    return order;
}

}  // namespace kvscope::analysis
