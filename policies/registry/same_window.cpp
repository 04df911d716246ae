#include "policies/registry/same_window.h"

namespace kvscope::policies {

void set_default_window(PolicySpec& spec, std::string_view text, int window) {
    const bool is_set =
        text.find(":window=") != std::string_view::npos || text.find(",window=") != std::string_view::npos;
    if (spec.values.has("window") && !is_set) spec.values.set("window", std::to_string(window));
}

std::string with_default_window(const std::string& text, int window) {
    PolicySpec spec = parse_policy(text);
    set_default_window(spec, text, window);
    return spec.label();
}

}  // namespace kvscope::policies
