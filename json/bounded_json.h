#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

/// JSON that comes from outside: the library copies and prints values by recursion, so that what nests too deep would
/// end the program long after it was read.
namespace kvscope::bounded_json {

constexpr size_t deepest = 256;

/// Where the text nests deeper than `deepest`; its length where it does not. Counts brackets outside strings, which is
/// what the levels of a valid text are.
size_t too_deep_at(std::string_view text);

/// The text with NaN, Infinity and -Infinity outside strings as strings that `non_finite` knows; empty if it has none.
std::string with_constants_as_texts(std::string_view text);

/// The number that such a string stands for.
std::optional<double> non_finite(std::string_view text);

/// The reverse of with_constants_as_texts, throughout a value.
template <class Json>
void restore_constants(Json& value) {
    if (value.is_structured()) {
        for (auto& item : value) restore_constants(item);
    } else if (value.is_string()) {
        if (const auto number = non_finite(value.template get_ref<const std::string&>())) value = *number;
    }
}

/// The value, for a text that nests no deeper than `deepest`. NaN, Infinity and -Infinity are numbers, as for Python's
/// json module, which writes them.
/// @throws nlohmann::json::exception for a text that is not JSON
template <class Json = nlohmann::json>
Json parse(std::string_view text) {
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

/// The value; a discarded one for a text that is not JSON or nests too deep.
template <class Json = nlohmann::json>
Json parse_or_discard(std::string_view text) {
    if (too_deep_at(text) < text.size()) return Json(nlohmann::json::value_t::discarded);
    try {
        return parse<Json>(text);
    } catch (const nlohmann::json::exception&) {
        return Json(nlohmann::json::value_t::discarded);
    }
}

}  // namespace kvscope::bounded_json
