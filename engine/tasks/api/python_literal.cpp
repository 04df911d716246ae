#include "engine/tasks/api/python_literal.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "common/utf8.h"

namespace kvscope::engine {
namespace {

using nlohmann::json;

struct NoLiteral {};

constexpr int deepest = 100;
constexpr std::string_view white_space = " \t\f\r\n", digits = "0123456789";

bool is_digit(char c) { return digits.find(c) != std::string_view::npos; }

class LiteralReader {
 public:
    explicit LiteralReader(std::string_view text) : text_(text) {}

    json read_all() {
        const size_t begin = std::min(text_.find_first_not_of(white_space), text_.size());
        const size_t line = text_.substr(0, begin).rfind('\n');
        if (line != std::string_view::npos && line + 1 < begin) throw NoLiteral();  // Python: unexpected indent
        json value = read_value(0).value;
        skip_space();
        if (at_ < text_.size()) throw NoLiteral();
        return value;
    }

 private:
    struct Value {
        json value;
        bool can_be_key = true;
    };

    [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    bool take(std::string_view expected) {
        if (!text_.substr(at_).starts_with(expected)) return false;
        at_ += expected.size();
        return true;
    }

    void skip_space() {
        for (;;) {
            at_ = std::min(text_.find_first_not_of(white_space, at_), text_.size());
            if (next() != '#') return;
            at_ = std::min(text_.find('\n', at_), text_.size());
        }
    }

    Value read_value(int depth) {
        if (depth > deepest) throw NoLiteral();
        skip_space();
        if (take("[")) return {read_elements(']', depth).elements, false};
        if (take("(")) return read_tuple(depth);
        if (take("{")) return {read_braces(depth), false};
        if (is_text_next()) return {read_texts()};
        if (take("True")) return {json(true)};
        if (take("False")) return {json(false)};
        if (take("None")) return {json()};
        return {read_number()};
    }

    struct Elements {
        json elements = json::array();
        bool can_be_key = true;
        bool has_comma = false;
    };

    Elements read_elements(char end, int depth) {
        Elements all;
        for (skip_space(); !take(std::string_view(&end, 1)); skip_space()) {
            if (!all.elements.empty() && !all.has_comma) throw NoLiteral();
            Value element = read_value(depth + 1);
            all.can_be_key = all.can_be_key && element.can_be_key;
            all.elements.push_back(std::move(element.value));
            skip_space();
            all.has_comma = take(",");
            if (!all.has_comma && next() != end) throw NoLiteral();
        }
        return all;
    }

    Value read_tuple(int depth) {
        Elements all = read_elements(')', depth);
        if (all.elements.size() == 1 && !all.has_comma) return {all.elements.front(), all.can_be_key};
        return {std::move(all.elements), all.can_be_key};
    }

    /// Reads a dict or a set.
    json read_braces(int depth) {
        json dict = json::object(), elements = json::array();
        skip_space();
        if (take("}")) return dict;
        for (bool is_dict = false;;) {
            Value key = read_value(depth + 1);
            skip_space();
            if (dict.empty() && elements.empty() && !is_dict) is_dict = next() == ':';
            if (!key.can_be_key || (is_dict && !take(":"))) throw NoLiteral();
            if (!is_dict) {
                elements.push_back(std::move(key.value));
            } else {
                json value = read_value(depth + 1).value;
                if (key.value.is_string()) dict[key.value.get<std::string>()] = std::move(value);
            }
            skip_space();
            const bool has_comma = take(",");
            skip_space();
            if (take("}")) return is_dict ? dict : elements;
            if (!has_comma) throw NoLiteral();
        }
    }

    json read_number() {
        bool is_negative = false;
        for (; next() == '-' || next() == '+'; ++at_, skip_space()) is_negative ^= next() == '-';
        std::string number;
        for (char last = '\0'; at_ < text_.size(); last = text_[at_++]) {
            const bool is_sign = (next() == '-' || next() == '+') && (last == 'e' || last == 'E');
            const bool is_separator =
                next() == '_' && is_digit(last) && is_digit(at_ + 1 < text_.size() ? text_[at_ + 1] : '_');
            if (!is_sign && !is_separator && !is_digit(next()) &&
                std::string_view(".eE").find(next()) == std::string_view::npos)
                break;
            if (!is_separator) number += next();
        }
        const char* const end = number.data() + number.size();
        const bool is_whole = number.find_first_not_of(digits) == std::string::npos;
        if (is_whole && number.size() > 1 && number.front() == '0' &&
            number.find_first_not_of('0') != std::string::npos)
            throw NoLiteral();
        int64_t whole = 0;
        const auto read_whole = std::from_chars(number.data(), end, whole);
        if (read_whole.ec == std::errc() && read_whole.ptr == end) return is_negative ? -whole : whole;
        double value = 0;
        const auto read = std::from_chars(number.data(), end, value);
        if (read.ec != std::errc() || read.ptr != end) throw NoLiteral();
        return is_negative ? -value : value;
    }

    /// Whether a text begins here, after letters such as r that change its meaning.
    [[nodiscard]] bool is_text_next() const {
        const size_t quote = text_.find_first_not_of("rRuU", at_);
        return quote != std::string_view::npos && quote <= at_ + 1 && (text_[quote] == '\'' || text_[quote] == '"');
    }

    /// Reads adjacent texts, which Python joins.
    std::string read_texts() {
        std::string joined;
        for (; is_text_next(); skip_space()) {
            const bool is_raw = next() == 'r' || next() == 'R';
            at_ += next() == '\'' || next() == '"' ? 0 : 1;
            const std::string one(1, next());
            const std::string three = one + one + one;
            const bool is_long = text_.substr(at_).starts_with(three);
            const std::string& quote = is_long ? three : one;
            at_ += quote.size();
            while (!take(quote)) {
                if (at_ == text_.size() || (next() == '\n' && !is_long)) throw NoLiteral();
                if (next() != '\\')
                    joined += text_[at_++];
                else if (is_raw)
                    joined += text_[at_++], joined += take_byte();
                else
                    read_escape(joined);
            }
        }
        return joined;
    }

    char take_byte() {
        if (at_ == text_.size()) throw NoLiteral();
        return text_[at_++];
    }

    void read_escape(std::string& joined) {
        constexpr std::string_view letters = "abfnrtv\\'\"", meanings = "\a\b\f\n\r\t\v\\'\"";
        ++at_;
        const char letter = take_byte();
        if (letter == '\n') return;
        if (letter == 'N') throw NoLiteral();
        if (const size_t found = letters.find(letter); found != std::string_view::npos) {
            joined += meanings[found];
        } else if (const size_t n = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0; n > 0) {
            append_utf8(joined, read_code(n, 16));
        } else if (letter >= '0' && letter <= '7') {
            --at_;
            const size_t end = std::min(text_.find_first_not_of("01234567", at_), text_.size());
            append_utf8(joined, read_code(std::min<size_t>(end - at_, 3), 8));
        } else {
            joined += '\\';
            joined += letter;
        }
    }

    char32_t read_code(size_t n, int base) {
        uint32_t code = 0;
        const std::string_view number = text_.substr(at_, n);
        const auto read = std::from_chars(number.data(), number.data() + number.size(), code, base);
        if (number.size() < n || read.ec != std::errc() || read.ptr != number.data() + n || code > 0x10FFFF)
            throw NoLiteral();
        at_ += n;
        const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
        return is_surrogate ? U'\uFFFD' : static_cast<char32_t>(code);
    }

    std::string_view text_;
    size_t at_ = 0;
};

}  // namespace

std::optional<nlohmann::json> read_python_literal(std::string_view text) {
    try {
        return LiteralReader(text).read_all();
    } catch (const NoLiteral&) {
        return std::nullopt;
    }
}

}  // namespace kvscope::engine
