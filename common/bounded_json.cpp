#include "common/bounded_json.h"

#include <array>
#include <limits>
#include <utility>

namespace kvscope::bounded_json {
namespace {

// Prefix of strings that stand for JSON constants. No model file contains it.
constexpr std::string_view constant = "kvscope's JSON constant: ";

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::array<std::pair<std::string_view, double>, 3> constants = {{
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", infinity},
    {"-Infinity", -infinity},
}};

}  // namespace

size_t too_deep_at(std::string_view text) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (in_string) {
            if (c == '\\') ++at;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest) return at;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return text.size();
}

std::string with_constants_as_texts(std::string_view text) {
    std::string plain;
    size_t copied = 0;
    bool in_string = false;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '"') in_string = !in_string;
        if (in_string) {
            if (text[at] == '\\') ++at;
            continue;
        }
        for (const auto& [name, value] : constants) {
            if (!text.substr(at).starts_with(name)) continue;
            plain.append(text, copied, at - copied).append("\"").append(constant).append(name).append("\"");
            copied = at + name.size();
            at = copied - 1;
            break;
        }
    }
    return copied == 0 ? std::string() : plain.append(text, copied);
}

std::optional<double> parse_non_finite(std::string_view text) {
    if (!text.starts_with(constant)) return std::nullopt;
    for (const auto& [name, value] : constants)
        if (text.substr(constant.size()) == name) return value;
    return std::nullopt;
}

}  // namespace kvscope::bounded_json
