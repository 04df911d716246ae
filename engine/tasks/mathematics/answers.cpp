#include "engine/tasks/mathematics/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/utf8.h"
#include "engine/tasks/longbench/python_text.h"

namespace kvscope::engine::mathematics {
namespace {

constexpr std::string_view box = "\\boxed{", box_of_kvpress = "boxed{";

/// Where MATH's code raises an exception and then compares the answers as they are.
struct NotNormal {};

/// Returns the parts between separators of several characters: text.split(separator).
std::vector<std::string_view> parts_between(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> parts;
    for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
        parts.push_back(text.substr(0, at));
        text.remove_prefix(at + separator.size());
    }
    parts.push_back(text);
    return parts;
}

/// Removes the first character from `text` and returns it. @throws NotNormal if there is none
std::string_view take_character(std::string_view& text) {
    if (text.empty()) throw NotNormal();
    const std::string_view character = text.substr(0, decode_utf8_character(text, 0).bytes);
    text.remove_prefix(character.size());
    return character;
}

/// \frac12 and \frac1{2} become \frac{1}{2}.
std::string with_braces_of_fractions(const std::string& text) {
    const auto parts = parts_between(text, "\\frac");
    std::string result(parts.front());
    for (size_t i = 1; i < parts.size(); ++i) {
        std::string_view rest = parts[i];
        const std::string_view numerator = take_character(rest);
        if (numerator == "{") {
            result += fmt::format("\\frac{}", parts[i]);
            continue;
        }
        if (rest.empty()) return text;
        const std::string_view denominator = take_character(rest);
        result += denominator == "{" ? fmt::format("\\frac{{{}}}{{{}", numerator, rest)
                                     : fmt::format("\\frac{{{}}}{{{}}}{}", numerator, denominator, rest);
    }
    return result;
}

/// \sqrt3 becomes \sqrt{3}.
std::string with_braces_of_roots(const std::string& text) {
    const auto parts = parts_between(text, "\\sqrt");
    std::string result(parts.front());
    for (size_t i = 1; i < parts.size(); ++i) {
        std::string_view rest = parts[i];
        const std::string_view radicand = take_character(rest);
        result += radicand == "{" ? fmt::format("\\sqrt{}", parts[i]) : fmt::format("\\sqrt{{{}}}{}", radicand, rest);
    }
    return result;
}

/// Whether the text is how Python writes an integer.
bool is_integer(std::string_view text) {
    if (text == "0") return true;
    if (text.starts_with('-')) text.remove_prefix(1);
    return !text.empty() && text.front() != '0' && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// a/b becomes \frac{a}{b}.
std::string with_fraction_of_integers(std::string text) {
    const auto parts = parts_between(text, "/");
    if (parts.size() != 2 || !is_integer(parts[0]) || !is_integer(parts[1])) return text;
    return fmt::format("\\frac{{{}}}{{{}}}", parts[0], parts[1]);
}

std::string without_unit(const std::string& text) {
    const auto parts = parts_between(text, "\\text{ ");
    if (parts.size() > 2) throw NotNormal();
    return std::string(parts.front());
}

/// "x=3" becomes "3", if at most two characters precede the only equals sign.
std::string without_name(const std::string& text) {
    const auto parts = parts_between(text, "=");
    const bool has_name = parts.size() == 2 && longbench::characters_of(parts.front()).size() <= 2;
    return std::string(has_name ? parts.back() : text);
}

std::string normalized(std::string_view answer) {
    std::string text(answer);
    const auto replace = [&](std::string_view from, std::string_view to) { longbench::replace_all(text, from, to); };
    replace("\n", "");
    replace("\\!", "");
    replace("\\\\", "\\");
    replace("tfrac", "frac");
    replace("dfrac", "frac");
    for (const std::string_view removed : {"\\left", "\\right", "^{\\circ}", "^\\circ", "\\$"}) replace(removed, "");
    text = without_unit(text);
    replace("\\%", "");
    replace(" .", " 0.");
    replace("{.", "{0.");
    if (text.empty()) return text;
    if (text.front() == '.') text.insert(0, "0");
    text = with_braces_of_roots(without_name(text));
    replace(" ", "");
    text = with_braces_of_fractions(text);
    if (text == "0.5") text = "\\frac{1}{2}";
    return with_fraction_of_integers(std::move(text));
}

}  // namespace

std::optional<std::string> number_after_hashes(std::string_view text) {
    constexpr std::string_view hashes = "#### ";
    for (size_t at = text.find(hashes); at != std::string_view::npos; at = text.find(hashes, at + 1)) {
        const std::string_view rest = text.substr(at + hashes.size());
        const size_t sign = rest.starts_with('-') ? 1 : 0;
        const size_t end = std::min(rest.find_first_not_of("0123456789.,", sign), rest.size());
        if (end == sign) continue;
        std::string number(rest.substr(0, end));
        std::erase(number, ',');
        return number;
    }
    return std::nullopt;
}

std::optional<std::string> boxed_answer(std::string_view text) {
    const size_t begin = text.rfind("\\boxed");
    if (begin == std::string_view::npos || !text.substr(begin).starts_with(box)) return std::nullopt;
    int depth = 0;
    for (size_t at = begin; at < text.size(); ++at) {
        depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
        if (text[at] == '}' && depth == 0) return std::string(text.substr(begin + box.size(), at - begin - box.size()));
    }
    return std::nullopt;
}

bool are_equivalent(std::string_view a, std::string_view b) {
    try {
        return normalized(a) == normalized(b);
    } catch (const NotNormal&) {
        return a == b;
    }
}

std::optional<std::string_view> first_boxed_of_kvpress(std::string_view text) {
    const auto parts = parts_between(text, box_of_kvpress);
    if (parts.size() < 2) return std::nullopt;
    return parts[1].substr(0, parts[1].find('}'));
}

std::string_view last_boxed_of_kvpress(std::string_view text) {
    const std::string_view last = parts_between(text, box_of_kvpress).back();
    return last.substr(0, last.find('}'));
}

}  // namespace kvscope::engine::mathematics
