#include "engine/tokenizer/tokenizer_regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <stdexcept>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/utf8.h"

namespace kvscope::checkpoint {
namespace {

/// Translates an Oniguruma pattern to PCRE2 with UTF, UCP and MULTILINE.
class Translation {
 public:
    explicit Translation(std::string_view pattern) : pattern_(pattern) {}

    std::string run() {
        while (at_ < pattern_.size()) {
            const char c = pattern_[at_];
            if (c == '\\') {
                escape(false);
            } else if (c == '[') {
                character_class();
            } else if (c == '(' && next() == '?') {
                group();
            } else {
                out_ += c;
                ++at_;
            }
        }
        return std::move(out_);
    }

 private:
    char next(size_t ahead = 1) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }

    [[noreturn]] void refuse(const std::string& construct) const {
        throw std::runtime_error(
            fmt::format("the regular expression {} uses {}, which is not supported", pattern_, construct));
    }

    void take(size_t count) {
        out_ += pattern_.substr(at_, count);
        at_ += count;
    }

    void replace(size_t count, std::string_view by) {
        out_ += by;
        at_ += count;
    }

    // In PCRE2, \s includes U+180E and \w excludes marks. Oniguruma follows Unicode.
    void escape(bool in_class) {
        static constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
        switch (next()) {
            case 's':
                return replace(2, R"(\p{White_Space})");
            case 'S':
                return replace(2, R"(\P{White_Space})");
            case 'w':
                return replace(2, in_class ? std::string(word) : fmt::format("[{}]", word));
            case 'W':
                if (in_class) refuse("\\W inside a character class");
                return replace(2, fmt::format("[^{}]", word));
            case 'h':
                return replace(2, in_class ? "0-9a-fA-F" : "[0-9a-fA-F]");
            case 'H':
                if (in_class) refuse("\\H inside a character class");
                return replace(2, "[^0-9a-fA-F]");
            case 'u': {
                const std::string_view digits = pattern_.substr(std::min(at_ + 2, pattern_.size()), 4);
                if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
                    refuse("\\u without four hexadecimal digits");
                }
                return replace(6, fmt::format("\\x{{{}}}", digits));
            }
            case 'b':
            case 'B':
                if (!in_class) refuse("word boundaries");
                return take(2);
            case 'G':
            case 'K':
            case 'R':
            case 'X':
            case 'g':
            case 'k':
                refuse(fmt::format("\\{}", next()));
            case '\0':
                refuse("a backslash at its end");
            default:
                return take(2);
        }
    }

    void character_class() {
        take(1);
        if (next(0) == '^') take(1);
        if (next(0) == ']') take(1);
        while (at_ < pattern_.size() && pattern_[at_] != ']') {
            if (pattern_[at_] == '\\') {
                escape(true);
            } else if (pattern_[at_] == '[') {
                if (next() != ':') refuse("a character class inside another");
                const size_t end = pattern_.find(":]", at_ + 2);
                if (end == std::string_view::npos) refuse("an unclosed POSIX bracket");
                take(end + 2 - at_);
            } else if (pattern_[at_] == '&' && next() == '&') {
                refuse("an intersection of character classes");
            } else {
                take(1);
            }
        }
        take(at_ < pattern_.size() ? 1 : 0);
    }

    // (?m) and (?x) have other meanings in Ruby than in Perl.
    void group() {
        size_t end = at_ + 2;
        while (end < pattern_.size() &&
               (std::isalpha(static_cast<unsigned char>(pattern_[end])) || pattern_[end] == '-'))
            ++end;
        const std::string_view options = pattern_.substr(at_ + 2, end - at_ - 2);
        if (options.find_first_not_of("i-") != std::string_view::npos)
            refuse(fmt::format("the options (?{})", options));
        take(2 + options.size());
    }

    std::string_view pattern_;
    std::string out_;
    size_t at_ = 0;
};

struct MatchDataFree {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextFree {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string pcre_message(int error) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(error, text, sizeof text);
    return reinterpret_cast<const char*>(text);
}

}  // namespace

void Regex::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Regex Regex::from_oniguruma(std::string_view pattern) { return Regex(Translation(pattern).run()); }

Regex Regex::literal(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c))) escaped += '\\';
        escaped += c;
    }
    return Regex(escaped);
}

Regex::Regex(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
        pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context.get(), 100);
    code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at, context.get()),
        Free{});
    if (!code_) {
        throw std::runtime_error(
            fmt::format("the regular expression {} is not valid: {}", pattern, pcre_message(error)));
    }
    // Without the just-in-time compiler, PCRE2 interprets the pattern.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
}

std::vector<Span> Regex::cut(std::string_view text, TokenizerLimits& limits) const {
    std::vector<Span> spans;
    const std::unique_ptr<pcre2_match_data, MatchDataFree> data(pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, MatchContextFree> context(pcre2_match_context_create(nullptr));
    if (!data || !context) throw std::bad_alloc();
    // Allows backtracking over long runs of spaces, but no exponential search.
    pcre2_set_match_limit(context.get(),
                          static_cast<uint32_t>(std::min<size_t>(10'000'000 + 64 * text.size(), UINT32_MAX)));

    const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    size_t covered = 0, from = 0;
    bool after_match = false;
    while (from <= text.size()) {
        limits.step();
        int found = pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data.get(), context.get());
        if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
            found = pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(),
                                context.get());
        }
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) limits.fail("the tokenizer's regular expression failed on this text: " + pcre_message(found));
        const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data.get());
        const size_t begin = offsets[0], end = offsets[1];
        if (begin == end && after_match && end == covered) {
            from = end < text.size() ? end + decode_utf8_character(text, end).bytes : end + 1;
            continue;
        }
        if (covered < begin) spans.push_back({covered, begin, false});
        spans.push_back({begin, end, true});
        covered = from = end;
        after_match = true;
    }
    if (covered < text.size()) spans.push_back({covered, text.size(), false});
    return spans;
}

Regex regex_of(const JsonNode& pattern) {
    try {
        if (const auto literal = pattern.find("String")) return Regex::literal(literal->text());
        if (const auto regex = pattern.find("Regex")) return Regex::from_oniguruma(regex->text());
    } catch (const std::runtime_error& error) {
        if (std::string_view(error.what()).starts_with("the regular expression")) pattern.fail(error.what());
        throw;
    }
    pattern.fail("expected {\"Regex\": …} or {\"String\": …}");
}

}  // namespace kvscope::checkpoint
