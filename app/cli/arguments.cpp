#include "app/cli/arguments.h"

#include <algorithm>

namespace kvscope::cli {

std::vector<std::string> arguments_in_canonical_form(std::vector<std::string> arguments) {
    std::vector<std::string> canonical;
    bool are_options = true;
    for (auto& argument : arguments) {
        are_options = are_options && argument != "--";
        if (!are_options || argument.size() < 3 || argument.compare(0, 2, "--") != 0) {
            canonical.push_back(std::move(argument));
            continue;
        }
        const size_t end = std::min(argument.find('='), argument.size());
        std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
        const bool is_empty =
            end + 1 == argument.size();  // without a split, CLI11 takes the next argument as the value
        canonical.push_back(is_empty ? argument.substr(0, end) : std::move(argument));
        if (is_empty) canonical.emplace_back();
    }
    return canonical;
}

}  // namespace kvscope::cli
