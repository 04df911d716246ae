#include "engine/tokenizer/classifier/aligned_text.h"

#include "common/utf8.h"

namespace kvscope::checkpoint {

AlignedText make_aligned_text(std::string_view utf8) {
    AlignedText text;
    text.reserve(utf8.size());
    for (size_t at = 0; at < utf8.size();) {
        const Utf8Character step = decode_utf8_character(utf8, at);
        text.push_back({step.code, static_cast<uint32_t>(at), static_cast<uint32_t>(at + step.bytes)});
        at += step.bytes;
    }
    return text;
}

std::string aligned_text_to_utf8(std::span<const AlignedCharacter> text) {
    std::string utf8;
    for (const AlignedCharacter& character : text) append_utf8(utf8, character.code_point);
    return utf8;
}

}  // namespace kvscope::checkpoint
