#include "json/bounded_json.h"

namespace kvscope::bounded_json {

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

}  // namespace kvscope::bounded_json
