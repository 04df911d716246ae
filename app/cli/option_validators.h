#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kvscope::cli {

/// Accepts one of several names, with '_' equal to '-', and suggests the nearest name otherwise. For Option::transform:
/// the result is the name as listed.
struct OneOf : CLI::Validator {
    explicit OneOf(const std::vector<std::string>& names);
};

/// Accepts a whole number in a range.
struct WholeNumber : CLI::Validator {
    explicit WholeNumber(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
};

/// Accepts a real number in a range.
struct RealNumber : CLI::Validator {
    RealNumber(double low, double high);
};

/// Accepts the path of a file that can be created: its folder exists and it is not a folder. Checked before long work.
struct NewFile : CLI::Validator {
    NewFile();
};

/// Applies rules for all options of a command. Call it after all options are declared.
/// - Empty values are refused, because an unset shell variable should not go unnoticed.
/// - Numbers must be decimal, complete, finite and within their type's range.
/// - Options with one value may be repeated with the same value; check_repetitions() refuses different values.
void apply_common_rules(CLI::App& command);

/// Checks that no option with one value was given two different values.
/// @throws std::invalid_argument that names the option and its values
void check_repetitions(const CLI::App& command);

/// Returns an error message for arguments that the command does not know, with the nearest option; empty if there are
/// no such arguments.
std::string unknown_arguments(const CLI::App& command, const std::vector<std::string>& arguments);

/// Returns the error message for a first argument that is not a command.
std::string unknown_command(const std::string& name);

}  // namespace kvscope::cli
