#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/options/run_options.h"

namespace kvscope::engine::testing {

/// The defaults but for this option, which has another value that it can have.
[[nodiscard]] inline RunOptions with_another_value(const RunOption& option) {
    RunOptions options;
    std::visit(
        [&](auto member) {
            auto& value = options.*member;
            using Value = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, bool>)
                value = !value;
            else if constexpr (std::is_same_v<Value, std::string>)
                value = option.of_machine               ? "auto"
                        : option.choices.at(0) == value ? option.choices.at(1)
                                                        : option.choices.at(0);
            else if constexpr (std::is_floating_point_v<Value>)
                value = 0.25;
            else
                value = static_cast<Value>(value + 3);
        },
        option.member);
    return options;
}

/// The option's words among those of a command; empty where they are not there.
[[nodiscard]] inline std::pair<std::string, std::string> words_of(const RunOption& option, const RunOptions& options) {
    for (const auto& words : to_command_line_options(options)) {
        const std::string flags = "," + option.flags.substr(option.flags.starts_with('!') ? 1 : 0) + ",";
        if (flags.find("," + words.first + ",") != std::string::npos) return words;
    }
    return {};
}

}  // namespace kvscope::engine::testing
