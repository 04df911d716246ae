#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kvscope {

/// SHA-256 (FIPS 180-4) of bytes that are added in pieces.
class Sha256 {
 public:
    void update(std::span<const std::byte> data);
    void update(std::string_view text) { update(std::as_bytes(std::span(text))); }

    /// Returns 64 lower-case hexadecimal digits. The object cannot be used afterwards.
    [[nodiscard]] std::string hex_digest();

 private:
    void compress(const std::byte* block);

    std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, 64> pending_{};
    size_t n_pending_ = 0;
    uint64_t n_bytes_ = 0;
};

/// Returns the SHA-256 of a text as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_of(std::string_view text);

}  // namespace kvscope
