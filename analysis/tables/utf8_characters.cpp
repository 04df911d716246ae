#include "analysis/tables/utf8_characters.h"

#include <utf8proc.h>

namespace kvscope::analysis {

Utf8Character decode_utf8_character(std::string_view text, size_t at) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length <= 0) return {};
    return {static_cast<uint32_t>(code), static_cast<size_t>(length)};
}

std::string lower_case(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

}  // namespace kvscope::analysis
