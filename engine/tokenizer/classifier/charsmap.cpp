#include "engine/tokenizer/classifier/charsmap.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "common/utf8.h"

namespace kvscope::checkpoint {
namespace {

bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000ffu; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string_view blob) {
    uint32_t n_bytes = 0;
    if (blob.size() >= sizeof n_bytes) std::memcpy(&n_bytes, blob.data(), sizeof n_bytes);
    if (blob.size() < sizeof n_bytes || n_bytes % sizeof(uint32_t) != 0 || n_bytes == 0 ||
        n_bytes > blob.size() - sizeof n_bytes)
        throw std::runtime_error(
            fmt::format("is damaged: a trie of {} bytes does not fit into {} bytes", n_bytes, blob.size()));
    units_.resize(n_bytes / sizeof(uint32_t));
    std::memcpy(units_.data(), blob.data() + sizeof n_bytes, n_bytes);
    replacements_ = blob.substr(sizeof n_bytes + n_bytes);
    if (first_invalid_utf8(replacements_) != std::string_view::npos)
        throw std::runtime_error("is damaged: its replacements are not UTF-8");
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
    size_t node = offset_of(units_[0]);
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        node ^= byte;
        if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) return std::nullopt;
        const bool ends = has_leaf(units_[node]);
        node ^= offset_of(units_[node]);
        if (!ends) continue;
        const size_t begin = node < units_.size() ? value_of(units_[node]) : replacements_.size();
        if (begin >= replacements_.size()) return std::nullopt;
        const std::string_view rest = std::string_view(replacements_).substr(begin);
        return rest.substr(0, rest.find('\0'));
    }
    return std::nullopt;
}

std::string decode_base64(std::string_view text) {
    while (text.ends_with('=')) text.remove_suffix(1);
    std::string bytes;
    uint32_t bits = 0;
    int n_bits = 0;
    for (const char c : text) {
        static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const size_t digit = alphabet.find(c);
        if (digit == std::string_view::npos) throw std::runtime_error("is not base64");
        bits = bits << 6 | static_cast<uint32_t>(digit);
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        bytes += static_cast<char>(bits >> n_bits & 0xff);
    }
    return bytes;
}

}  // namespace kvscope::checkpoint
