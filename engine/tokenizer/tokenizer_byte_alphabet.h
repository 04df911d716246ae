#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace kvscope::checkpoint {

/// GPT-2's alphabet, which writes each byte as a printable character (space is Ġ).
class ByteAlphabet {
 public:
    [[nodiscard]] static const ByteAlphabet& instance();

    [[nodiscard]] const std::string& spell(char byte) const { return characters_[static_cast<uint8_t>(byte)]; }

    [[nodiscard]] int byte_of(char32_t character) const { return character < bytes_.size() ? bytes_[character] : -1; }

 private:
    ByteAlphabet();

    std::array<std::string, 256> characters_;
    std::array<int16_t, 0x144> bytes_{};
};

}  // namespace kvscope::checkpoint
