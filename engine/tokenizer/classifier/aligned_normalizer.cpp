#include "engine/tokenizer/classifier/aligned_normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "common/utf8.h"
#include "engine/tokenizer/classifier/charsmap.h"
#include "engine/tokenizer/tokenizer_regex.h"

namespace kvscope::checkpoint {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

class Sequence final : public AlignedNormalizer {
 public:
    explicit Sequence(std::vector<std::unique_ptr<AlignedNormalizer>> steps) : steps_(std::move(steps)) {}
    AlignedText apply(const AlignedText& text, TokenizerLimits& limits) const override {
        AlignedText out = text;
        for (const auto& step : steps_) {
            out = step->apply(out, limits);
            limits.step();
            limits.require_length(out.size());
        }
        return out;
    }

 private:
    std::vector<std::unique_ptr<AlignedNormalizer>> steps_;
};

class BertNormalizer final : public AlignedNormalizer {
 public:
    struct Options {
        bool clean_text, handle_chinese_chars, strip_accents, lowercase;
    };
    explicit BertNormalizer(Options options) : options_(options) {}

    AlignedText apply(const AlignedText& text, TokenizerLimits&) const override {
        AlignedText out;
        out.reserve(text.size());
        for (AlignedCharacter c : text) {
            if (options_.clean_text) {
                if (is_removed(c.code_point)) continue;
                if (is_white_space(c.code_point)) c.code_point = ' ';
            }
            const bool apart = options_.handle_chinese_chars && is_chinese(c.code_point);
            if (apart) out.push_back({' ', c.begin, c.end});
            out.push_back(c);
            if (apart) out.push_back({' ', c.begin, c.end});
        }
        if (options_.strip_accents) out = without_accents(out);
        if (options_.lowercase) out = in_lower_case(out);
        return out;
    }

 private:
    static bool is_removed(char32_t c) {
        if (c == '\t' || c == '\n' || c == '\r') return false;
        const auto kind = category(c);
        return c == 0xFFFD || kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
               kind == UTF8PROC_CATEGORY_CO;
    }

    static bool is_chinese(char32_t c) {
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

    static AlignedText without_accents(const AlignedText& text) {
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

    static AlignedText in_lower_case(const AlignedText& text) {
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

    Options options_;
};

/// As in `tokenizers`, rules apply to whole graphemes of fewer than six bytes, or else to each character.
class Precompiled final : public AlignedNormalizer {
 public:
    explicit Precompiled(Charsmap map) : map_(std::move(map)) {}

    AlignedText apply(const AlignedText& text, TokenizerLimits& limits) const override {
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
                if (const auto replacement = map_.find(utf8)) {
                    replace(grapheme, *replacement, out);
                    continue;
                }
            }
            for (size_t i = 0; i < grapheme.size(); ++i) {
                const auto character = grapheme.subspan(i, 1);
                if (const auto replacement = map_.find(aligned_text_to_utf8(character))) {
                    replace(character, *replacement, out);
                } else {
                    out.push_back(character[0]);
                }
            }
        }
        return out;
    }

 private:
    static size_t grapheme_end(const AlignedText& text, size_t begin) {
        utf8proc_int32_t state = 0;
        size_t end = begin + 1;
        while (end < text.size() &&
               !utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(text[end - 1].code_point),
                                                 static_cast<utf8proc_int32_t>(text[end].code_point), &state))
            ++end;
        return end;
    }

    /// Assigns new characters to old characters in order. The last old character gets all remaining new characters.
    static void replace(std::span<const AlignedCharacter> old, std::string_view replacement, AlignedText& out) {
        size_t i = 0;
        for (const AlignedCharacter& c : make_aligned_text(replacement)) {
            const AlignedCharacter& from = old[std::min(i++, old.size() - 1)];
            out.push_back({c.code_point, from.begin, from.end});
        }
    }

    Charsmap map_;
};

class Replace final : public AlignedNormalizer {
 public:
    Replace(Regex pattern, std::string_view content)
        : pattern_(std::move(pattern)), content_(make_aligned_text(content)) {}

    AlignedText apply(const AlignedText& text, TokenizerLimits& limits) const override {
        AlignedText out;
        std::string utf8;
        std::vector<size_t> character_at;  // for each byte
        for (size_t i = 0; i < text.size(); ++i) {
            append_utf8(utf8, text[i].code_point);
            character_at.resize(utf8.size(), i);
        }
        character_at.push_back(text.size());
        for (const Span& span : pattern_.cut(utf8, limits)) {
            limits.require_length(out.size());
            const size_t begin = character_at[span.begin], end = character_at[span.end];
            if (!span.matched) {
                out.insert(out.end(), text.begin() + static_cast<std::ptrdiff_t>(begin),
                           text.begin() + static_cast<std::ptrdiff_t>(end));
            } else if (begin < end) {
                for (const AlignedCharacter& c : content_)
                    out.push_back({c.code_point, text[end - 1].begin, text[end - 1].end});
            }
        }
        return out;
    }

 private:
    Regex pattern_;
    AlignedText content_;
};

class Strip final : public AlignedNormalizer {
 public:
    Strip(bool left, bool right) : left_(left), right_(right) {}

    AlignedText apply(const AlignedText& text, TokenizerLimits&) const override {
        auto begin = text.begin(), end = text.end();
        while (left_ && begin != end && is_white_space(begin->code_point)) ++begin;
        while (right_ && begin != end && is_white_space((end - 1)->code_point)) --end;
        return {begin, end};
    }

 private:
    bool left_, right_;
};

std::unique_ptr<AlignedNormalizer> make_precompiled(const JsonNode& node) {
    const JsonNode map = node.at("precompiled_charsmap");
    try {
        return std::make_unique<Precompiled>(Charsmap(decode_base64(map.text())));
    } catch (const std::runtime_error& error) {
        map.fail(error.what());
    }
}

}  // namespace

std::unique_ptr<AlignedNormalizer> make_aligned_normalizer(const JsonNode& node) {
    const std::string& type = node.at("type").text();
    if (type == "Sequence") return std::make_unique<Sequence>(node.at("normalizers").each(make_aligned_normalizer));
    if (type == "BertNormalizer") {
        const bool lowercase = node.boolean_or("lowercase", true);
        return std::make_unique<BertNormalizer>(BertNormalizer::Options{
            .clean_text = node.boolean_or("clean_text", true),
            .handle_chinese_chars = node.boolean_or("handle_chinese_chars", true),
            .strip_accents = node.boolean_or("strip_accents", lowercase),
            .lowercase = lowercase,
        });
    }
    if (type == "Precompiled") return make_precompiled(node);
    if (type == "Replace") {
        return std::make_unique<Replace>(regex_of(node.at("pattern")), node.at("content").text());
    }
    if (type == "Strip") {
        return std::make_unique<Strip>(node.boolean_or("strip_left", true), node.boolean_or("strip_right", true));
    }
    node.fail(
        fmt::format("the normalizer \"{}\" is not supported for a token classifier; supported are Sequence, "
                    "BertNormalizer, Precompiled, Replace, Strip",
                    type));
}

}  // namespace kvscope::checkpoint
