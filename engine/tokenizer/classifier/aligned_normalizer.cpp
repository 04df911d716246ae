#include "engine/tokenizer/classifier/aligned_normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/utf8.h"
#include "engine/tokenizer/tokenizer_regex.h"

namespace kvscope::checkpoint {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000ffu; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

/// SentencePiece's compiled normalization rules (`precompiled_charsmap`): a trie with offsets of replacements.
class Charsmap {
 public:
    /// @param blob trie length in bytes (u32, little endian), trie units (u32), zero-terminated replacements
    explicit Charsmap(std::string_view blob);

    /// Returns the replacement of the shortest rule at the start of `text`, or nullopt.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view text) const;

 private:
    std::vector<uint32_t> units_;
    std::string replacements_;
};

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

AlignedNormalizer sequence(std::vector<AlignedNormalizer> steps) {
    return [steps = std::move(steps)](const AlignedText& text, TokenizerLimits& limits) {
        AlignedText out = text;
        for (const auto& step : steps) {
            out = step(out, limits);
            limits.step();
            limits.require_length(out.size());
        }
        return out;
    };
}

bool is_removed(char32_t c) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    const auto kind = category(c);
    return c == 0xFFFD || kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO;
}

bool is_chinese(char32_t c) {
    static constexpr std::array<std::pair<char32_t, char32_t>, 8> blocks{{{0x3400, 0x4DBF},
                                                                          {0x4E00, 0x9FFF},
                                                                          {0xF900, 0xFAFF},
                                                                          {0x20000, 0x2A6DF},
                                                                          {0x2A700, 0x2B73F},
                                                                          {0x2B740, 0x2B81F},
                                                                          {0x2B920, 0x2CEAF},
                                                                          {0x2F800, 0x2FA1F}}};
    return std::any_of(blocks.begin(), blocks.end(),
                       [c](const auto& block) { return c >= block.first && c <= block.second; });
}

AlignedText without_accents(const AlignedText& text) {
    AlignedText out;
    for (const AlignedCharacter& c : text) {
        std::array<utf8proc_int32_t, 32> parts{};
        const auto n =
            utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), parts.data(),
                                    static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, nullptr);
        if (n < 0) throw std::runtime_error(std::string("Unicode normalization failed: ") + utf8proc_errmsg(n));
        for (utf8proc_ssize_t i = 0; i < n; ++i) {
            const auto part = static_cast<char32_t>(parts[static_cast<size_t>(i)]);
            if (category(part) != UTF8PROC_CATEGORY_MN) out.push_back({part, c.begin, c.end});
        }
    }
    return out;
}

AlignedText in_lower_case(const AlignedText& text) {
    AlignedText out;
    out.reserve(text.size());
    for (const AlignedCharacter& c : text) {
        if (c.code_point == 0x130) {  // the only letter whose lower case has two code points
            out.push_back({'i', c.begin, c.end});
            out.push_back({0x307, c.begin, c.end});
            continue;
        }
        const auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code_point));
        out.push_back({static_cast<char32_t>(lower), c.begin, c.end});
    }
    return out;
}

struct BertOptions {
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
};

AlignedNormalizer bert_normalizer(BertOptions options) {
    return [options](const AlignedText& text, TokenizerLimits&) {
        AlignedText out;
        out.reserve(text.size());
        for (AlignedCharacter c : text) {
            if (options.clean_text) {
                if (is_removed(c.code_point)) continue;
                if (is_white_space(c.code_point)) c.code_point = ' ';
            }
            const bool apart = options.handle_chinese_chars && is_chinese(c.code_point);
            if (apart) out.push_back({' ', c.begin, c.end});
            out.push_back(c);
            if (apart) out.push_back({' ', c.begin, c.end});
        }
        if (options.strip_accents) out = without_accents(out);
        if (options.lowercase) out = in_lower_case(out);
        return out;
    };
}

size_t grapheme_end(const AlignedText& text, size_t begin) {
    utf8proc_int32_t state = 0;
    size_t end = begin + 1;
    while (end < text.size() &&
           !utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(text[end - 1].code_point),
                                             static_cast<utf8proc_int32_t>(text[end].code_point), &state))
        ++end;
    return end;
}

/// Assigns new characters to old characters in order. The last old character gets all remaining new characters.
void put_replacement(std::span<const AlignedCharacter> old, std::string_view replacement, AlignedText& out) {
    size_t i = 0;
    for (const AlignedCharacter& c : make_aligned_text(replacement)) {
        const AlignedCharacter& from = old[std::min(i++, old.size() - 1)];
        out.push_back({c.code_point, from.begin, from.end});
    }
}

/// As in `tokenizers`, rules apply to whole graphemes of fewer than six bytes, or else to each character.
AlignedNormalizer precompiled(const Charsmap& map) {
    return [map](const AlignedText& text, TokenizerLimits& limits) {
        AlignedText out;
        out.reserve(text.size());
        const std::span<const AlignedCharacter> all(text);
        for (size_t begin = 0; begin < text.size();) {
            const size_t end = grapheme_end(text, begin);
            const auto grapheme = all.subspan(begin, end - begin);
            begin = end;
            limits.require_length(out.size());
            const std::string utf8 = aligned_text_to_utf8(grapheme);
            if (utf8.size() < 6) {
                if (const auto replacement = map.find(utf8)) {
                    put_replacement(grapheme, *replacement, out);
                    continue;
                }
            }
            for (size_t i = 0; i < grapheme.size(); ++i) {
                const auto character = grapheme.subspan(i, 1);
                if (const auto replacement = map.find(aligned_text_to_utf8(character))) {
                    put_replacement(character, *replacement, out);
                } else {
                    out.push_back(character[0]);
                }
            }
        }
        return out;
    };
}

AlignedNormalizer replace(const Regex& pattern, const AlignedText& content) {
    return [pattern, content](const AlignedText& text, TokenizerLimits& limits) {
        AlignedText out;
        std::string utf8;
        std::vector<size_t> character_at;  // for each byte
        for (size_t i = 0; i < text.size(); ++i) {
            append_utf8(utf8, text[i].code_point);
            character_at.resize(utf8.size(), i);
        }
        character_at.push_back(text.size());
        for (const Span& span : pattern.cut(utf8, limits)) {
            limits.require_length(out.size());
            const size_t begin = character_at[span.begin], end = character_at[span.end];
            if (!span.matched) {
                out.insert(out.end(), text.begin() + static_cast<std::ptrdiff_t>(begin),
                           text.begin() + static_cast<std::ptrdiff_t>(end));
            } else if (begin < end) {
                for (const AlignedCharacter& c : content)
                    out.push_back({c.code_point, text[end - 1].begin, text[end - 1].end});
            }
        }
        return out;
    };
}

AlignedNormalizer strip(bool left, bool right) {
    return [left, right](const AlignedText& text, TokenizerLimits&) {
        auto begin = text.begin(), end = text.end();
        while (left && begin != end && is_white_space(begin->code_point)) ++begin;
        while (right && begin != end && is_white_space((end - 1)->code_point)) --end;
        return AlignedText(begin, end);
    };
}

AlignedNormalizer make_precompiled(const JsonNode& node) {
    const JsonNode map = node.at("precompiled_charsmap");
    try {
        return precompiled(Charsmap(decode_base64(map.text())));
    } catch (const std::runtime_error& error) {
        map.fail(error.what());
    }
}

}  // namespace

AlignedNormalizer make_aligned_normalizer(const JsonNode& node) {
    const std::string& type = node.at("type").text();
    if (type == "Sequence") return sequence(node.at("normalizers").each(make_aligned_normalizer));
    if (type == "BertNormalizer") {
        const bool lowercase = node.boolean_or("lowercase", true);
        return bert_normalizer({
            .clean_text = node.boolean_or("clean_text", true),
            .handle_chinese_chars = node.boolean_or("handle_chinese_chars", true),
            .strip_accents = node.boolean_or("strip_accents", lowercase),
            .lowercase = lowercase,
        });
    }
    if (type == "Precompiled") return make_precompiled(node);
    if (type == "Replace") return replace(regex_of(node.at("pattern")), make_aligned_text(node.at("content").text()));
    if (type == "Strip") return strip(node.boolean_or("strip_left", true), node.boolean_or("strip_right", true));
    node.fail(
        fmt::format("the normalizer \"{}\" is not supported for a token classifier; supported are Sequence, "
                    "BertNormalizer, Precompiled, Replace, Strip",
                    type));
}

}  // namespace kvscope::checkpoint
