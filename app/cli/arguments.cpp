#include "app/cli/arguments.h"

#include <algorithm>

namespace kvscope::cli {

std::vector<std::string> arguments_in_canonical_form(std::vector<std::string> arguments) {
    for (auto& argument : arguments) {
        if (argument == "--") break;
        if (argument.size() < 3 || argument.compare(0, 2, "--") != 0) continue;
        const auto end = argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
        std::replace(argument.begin(), end, '_', '-');
    }
    return arguments;
}

}  // namespace kvscope::cli
