#include "engine/tasks/api/python_format.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>

#include "common/utf8.h"

namespace kvscope::engine {
namespace {

bool is_shown_as_code(char32_t character) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(character));
    return category == UTF8PROC_CATEGORY_CN || category >= UTF8PROC_CATEGORY_ZL ||
           (category == UTF8PROC_CATEGORY_ZS && character != U' ');
}

/// repr(text)
std::string python_quoted(std::string_view text) {
    const bool has_single = text.find('\'') != std::string_view::npos;
    const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
    std::string out(1, quote);
    for (size_t at = 0; at < text.size();) {
        const auto character = decode_utf8_character(text, at);
        const char32_t code = character.code;
        if (code == U'\\' || code == static_cast<char32_t>(quote))
            out += {'\\', static_cast<char>(code)};
        else if (code == U'\n' || code == U'\r' || code == U'\t')
            out += code == U'\n' ? "\\n" : code == U'\r' ? "\\r" : "\\t";
        else if (!is_shown_as_code(code))
            out += text.substr(at, character.bytes);
        else
            out += code < 0x100     ? fmt::format("\\x{:02x}", static_cast<uint32_t>(code))
                   : code < 0x10000 ? fmt::format("\\u{:04x}", static_cast<uint32_t>(code))
                                    : fmt::format("\\U{:08x}", static_cast<uint32_t>(code));
        at += character.bytes;
    }
    return out + quote;
}

std::string python_repr_of(const nlohmann::json& value) {
    if (value.is_string()) return python_quoted(value.get_ref<const std::string&>());
    if (value.is_null()) return "None";
    if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
    if (value.is_number_float()) {
        const auto number = value.get<double>();
        constexpr double first_with_exponent = 1e16;
        const bool is_whole = std::floor(number) == number && std::abs(number) < first_with_exponent;
        return is_whole ? fmt::format("{:.1f}", number) : fmt::format("{}", number);
    }
    if (!value.is_structured()) return value.dump();
    std::string items;
    for (const auto& [name, item] : value.items()) {
        if (!items.empty()) items += ", ";
        if (value.is_object()) items += python_quoted(name) + ": ";
        items += python_repr_of(item);
    }
    return value.is_object() ? "{" + items + "}" : "[" + items + "]";
}

}  // namespace

std::string python_text_of(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : python_repr_of(value);
}

std::string python_format(std::string_view format, const std::function<std::string(std::string_view name)>& value_of) {
    std::string text;
    while (!format.empty()) {
        const size_t begin = std::min(format.find('{'), format.size());
        text += format.substr(0, begin);
        const size_t end = format.find('}', begin);
        if (end == std::string_view::npos) return text + std::string(format.substr(begin));
        text += value_of(format.substr(begin + 1, end - begin - 1));
        format.remove_prefix(end + 1);
    }
    return text;
}

}  // namespace kvscope::engine
