#include "app/program/number_list.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>

namespace kvscope::program {

std::vector<int> number_list(std::string_view text, std::string_view what) {
    constexpr int most = 100000;
    std::vector<int> numbers;
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
        for (int layer = first; layer <= last; ++layer) numbers.push_back(layer);
    }
    return numbers;
}

std::pair<int64_t, int64_t> number_range(std::string_view text, std::string_view what) {
    std::pair<int64_t, int64_t> range;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, range.first);
    range.second = range.first;
    auto last = first;
    if (first.ec == std::errc() && first.ptr < end && *first.ptr == '-')
        last = std::from_chars(first.ptr + 1, end, range.second);
    if (last.ec == std::errc() && last.ptr == end) return range;
    throw std::invalid_argument(std::string(what) + " needs one range, as in 100-220, found '" + std::string(text) +
                                "'");
}

}  // namespace kvscope::program
