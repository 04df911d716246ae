#include "app/results/python_list.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>

#include "common/utf8.h"

namespace kvscope::results {
namespace {

/// Reads a list from the beginning of a text.
class ListReader {
 public:
    explicit ListReader(std::string_view text) : text_(text) {}

    std::optional<std::vector<std::string>> read() {
        skip_space();
        if (at_ >= text_.size() || text_[at_] != '[' || !read_list()) return std::nullopt;
        skip_space();
        if (at_ < text_.size()) return std::nullopt;
        return std::move(elements_);
    }

 private:
    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    }

    /// Requires '[' or '(' at the position. NumPy separates elements by white space, Python by commas.
    bool read_list() {
        std::string open;  // the brackets that will close the lists around the position
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '[' || c == '(') {
                open += c == '[' ? ']' : ')';
                ++at_;
            } else if (c == ']' || c == ')') {
                if (c != open.back()) return false;  // an interval: [2, 5)
                ++at_;
                open.pop_back();
                if (open.empty()) return true;
            } else if (c == ',' || c == ' ' || c == '\n' || c == '\t') {
                ++at_;
            } else if (c == '\'' || c == '"') {
                if (!read_string()) return false;
            } else if (!read_word()) {
                return false;
            }
        }
        return false;
    }

    /// Reads a number or a name, such as None. NumPy shortens long arrays to "[1 2 ... 9]", which are refused.
    bool read_word() {
        const size_t end = std::min(text_.find_first_of(",[]()'\" \n\t", at_), text_.size());
        const std::string_view word = text_.substr(at_, end - at_);
        at_ = end;
        if (word == "..." || word.empty()) return false;
        const bool opens = at_ < text_.size() && (text_[at_] == '(' || text_[at_] == '\'' || text_[at_] == '"');
        if (opens || word.starts_with("dtype=")) return true;  // array(…), b'…'
        elements_.emplace_back(word);
        return true;
    }

    bool read_string() {
        const char quote = text_[at_++];
        std::string out;
        while (at_ < text_.size()) {
            const char c = text_[at_++];
            if (c == quote) {
                elements_.push_back(std::move(out));
                return true;
            }
            if (c != '\\') {
                out += c;
            } else if (!read_escape(out)) {
                return false;
            }
        }
        return false;
    }

    bool read_escape(std::string& out) {
        if (at_ >= text_.size()) return false;
        const char c = text_[at_++];
        constexpr std::string_view names = "abfnrtv\\'\"", values = "\a\b\f\n\r\t\v\\'\"";
        if (const size_t known = names.find(c); known != std::string_view::npos) {
            out += values[known];
            return true;
        }
        const size_t n_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        if (n_digits == 0 || text_.size() - at_ < n_digits) return false;
        uint32_t code = 0;
        const char* const begin = text_.data() + at_;
        const auto [end, error] = std::from_chars(begin, begin + n_digits, code, 16);
        if (error != std::errc() || end != begin + n_digits || code > 0x10FFFF) return false;
        at_ += n_digits;
        append_utf8(out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
        return true;
    }

    std::string_view text_;
    size_t at_ = 0;
    std::vector<std::string> elements_;
};

/// str.isprintable() of one character
bool is_printable(char32_t character) {
    if (character == U' ') return true;
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(character));
    return category != UTF8PROC_CATEGORY_CN && !(category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_CO);
}

/// repr(text)
std::string quoted_as_in_python(std::string_view text) {
    const bool has_single = text.find('\'') != std::string_view::npos;
    const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
    std::string out(1, quote);
    for (size_t at = 0; at < text.size();) {
        const Utf8Character character = decode_utf8_character(text, at);
        const auto code = static_cast<uint32_t>(character.code);
        if (code == static_cast<uint32_t>(quote) || code == '\\') {
            out += '\\';
            out += static_cast<char>(code);
        } else if (code == '\n') {
            out += "\\n";
        } else if (code == '\r') {
            out += "\\r";
        } else if (code == '\t') {
            out += "\\t";
        } else if (!is_printable(character.code)) {
            out += code < 0x100     ? fmt::format("\\x{:02x}", code)
                   : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                    : fmt::format("\\U{:08x}", code);
        } else {
            append_utf8(out, character.code);
        }
        at += character.bytes;
    }
    return out + quote;
}

}  // namespace

std::optional<std::vector<std::string>> elements_of_list(std::string_view text) { return ListReader(text).read(); }

std::string list_as_text(std::span<const std::string> elements, std::string_view separator) {
    std::string out = "[";
    for (const std::string& element : elements) {
        if (out.size() > 1) out += separator;
        out += quoted_as_in_python(element);
    }
    return out + "]";
}

}  // namespace kvscope::results
