#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

/// JSON that comes from outside: the library copies and prints values by recursion, so that what nests too deep would
/// end the program long after it was read.
namespace kvscope::bounded_json {

constexpr size_t deepest = 256;

/// Where the text nests deeper than `deepest`; its length where it does not. Counts brackets outside strings, which is
/// what the levels of a valid text are.
size_t too_deep_at(std::string_view text);

/// The value; a discarded one for a text that is not JSON or nests too deep.
template <class Json = nlohmann::json>
Json parse_or_discard(std::string_view text) {
    if (too_deep_at(text) < text.size()) return Json(nlohmann::json::value_t::discarded);
    return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace kvscope::bounded_json
