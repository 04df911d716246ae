#include "engine/options/device_name.h"

#include <charconv>
#include <system_error>

namespace kvscope::engine {

std::optional<int> card_number(std::string_view name) {
    if (name == "cuda") return 0;
    constexpr std::string_view prefix = "cuda:";
    if (!name.starts_with(prefix)) return {};
    const std::string_view digits = name.substr(prefix.size());
    int number = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return {};
    return number;
}

bool is_device_name(std::string_view name) { return name == "cpu" || name == "auto" || card_number(name); }

}  // namespace kvscope::engine
