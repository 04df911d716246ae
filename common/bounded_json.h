#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/json.h"

/// JSON from outside the program, with limited depth because nlohmann::json handles values recursively.
namespace kvscope::bounded_json {

inline constexpr size_t deepest = 256;

/// Returns the position at which the text nests deeper than `deepest`, or the text's length if it never does.
[[nodiscard]] size_t too_deep_at(std::string_view text);

/// Returns the text with NaN, Infinity and -Infinity replaced by strings, or an empty text if it contains none of them.
[[nodiscard]] std::string with_constants_as_texts(std::string_view text);

/// Returns the number that a string from with_constants_as_texts() stands for; nullopt for other strings.
[[nodiscard]] std::optional<double> parse_non_finite(std::string_view text);

/// Replaces all strings from with_constants_as_texts() in a value, at any depth, by the numbers.
template <class Json>
void restore_constants(Json& value) {
    if (value.is_structured()) {
        for (auto& item : value) restore_constants(item);
    } else if (value.is_string()) {
        if (const auto number = parse_non_finite(value.template get_ref<const std::string&>())) value = *number;
    }
}

/// Parses a text with a depth of at most `deepest`. Accepts NaN, Infinity and -Infinity, as Python's json module does.
/// @throws nlohmann::json::exception if the text is not JSON
template <class Json = nlohmann::json>
[[nodiscard]] Json parse(std::string_view text) {
    try {
        return Json::parse(text);
    } catch (const nlohmann::json::parse_error&) {
        const std::string plain = with_constants_as_texts(text);
        Json value = plain.empty() ? Json(nlohmann::json::value_t::discarded) : Json::parse(plain, nullptr, false);
        if (value.is_discarded()) throw;
        restore_constants(value);
        return value;
    }
}

/// Returns the value, or a discarded value if the text is not JSON or nests too deep.
template <class Json = nlohmann::json>
[[nodiscard]] Json parse_or_discard(std::string_view text) {
    if (too_deep_at(text) < text.size()) return Json(nlohmann::json::value_t::discarded);
    try {
        return parse<Json>(text);
    } catch (const nlohmann::json::exception&) {
        return Json(nlohmann::json::value_t::discarded);
    }
}

}  // namespace kvscope::bounded_json
