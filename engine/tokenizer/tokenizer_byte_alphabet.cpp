#include "engine/tokenizer/tokenizer_byte_alphabet.h"

#include "common/utf8.h"

namespace kvscope::checkpoint {

const ByteAlphabet& ByteAlphabet::instance() {
    static const ByteAlphabet alphabet;
    return alphabet;
}

ByteAlphabet::ByteAlphabet() {
    bytes_.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        const char32_t character = itself ? static_cast<char32_t>(byte) : next++;
        bytes_[character] = static_cast<int16_t>(byte);
        append_utf8(characters_[byte], character);
    }
}

}  // namespace kvscope::checkpoint
