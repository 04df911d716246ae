#include "app/cli/layers.h"

#include <charconv>
#include <stdexcept>
#include <string>

namespace kvscope::cli {

std::vector<int> layers_from_text(std::string_view text, std::string_view what) {
    constexpr int most = 100000;
    std::vector<int> layers;
    const std::string no_list = "'" + std::string(text) + "' is not a list of " + std::string(what) + ": ";
    const auto number = [&](std::string_view part) {
        int value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (part.empty() || error != std::errc() || end != part.data() + part.size() || value < 0 || value > most)
            throw std::invalid_argument(no_list + "expected numbers and ranges, as in 0,5,10-12");
        return value;
    };
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        const std::string_view part = text.substr(0, comma);
        text.remove_prefix(std::min(comma + 1, text.size()));
        const auto dash = part.find('-');
        const int first = number(part.substr(0, dash));
        const int last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
        if (last < first) throw std::invalid_argument(no_list + std::string(part) + " is a descending range");
        for (int layer = first; layer <= last; ++layer) layers.push_back(layer);
    }
    return layers;
}

}  // namespace kvscope::cli
