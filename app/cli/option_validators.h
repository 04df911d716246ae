#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kvscope::cli {

/// Accepts one of several names, with '_' or '-'. For an unknown name, suggests the nearest one. For Option::transform.
/// Shells complete the names.
struct OneOf : CLI::Validator {
    explicit OneOf(const std::vector<std::string>& names);
};

/// Replaces the names that an option with OneOf accepts.
void replace_names(CLI::Option& option, const std::vector<std::string>& names);

/// Makes shells complete these values of an option that also accepts other values.
CLI::Option* suggest(CLI::Option* option, const std::vector<std::string>& values);

/// Returns the values of OneOf or suggest(), or nothing.
[[nodiscard]] std::vector<std::string> suggested_values(CLI::Option& option);

template <class Definitions>
[[nodiscard]] std::vector<std::string> defined_names(const Definitions& definitions) {
    std::vector<std::string> names;
    for (const auto& definition : definitions) names.push_back(definition.name);
    return names;
}

struct WholeNumber : CLI::Validator {
    explicit WholeNumber(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
};

struct RealNumber : CLI::Validator {
    RealNumber(double low, double high);
};

/// Accepts the path of a file in an existing folder. Refuses the path of a folder.
struct NewFile : CLI::Validator {
    NewFile();
};

/// Refuses empty values and numbers that do not fit their type. Call it after all options are declared.
void add_value_checks_to_options(CLI::App& command);

/// @throws std::invalid_argument with both values if an option that takes one value was given two different values
void check_repeated_options(const CLI::App& command);

/// Returns the error message for unknown arguments, with the nearest option, or "" if all arguments are known.
[[nodiscard]] std::string unknown_arguments(const CLI::App& command, const std::vector<std::string>& arguments);

[[nodiscard]] std::string unknown_command(const std::string& name);

}  // namespace kvscope::cli
