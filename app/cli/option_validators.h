#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kvscope::cli {

/// Accepts one of several names, with '_' equal to '-', and suggests the nearest name otherwise. For Option::transform.
struct OneOf : CLI::Validator {
    explicit OneOf(const std::vector<std::string>& names);
};

struct WholeNumber : CLI::Validator {
    explicit WholeNumber(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
};

struct RealNumber : CLI::Validator {
    RealNumber(double low, double high);
};

/// Accepts the path of a file that can be created: its folder exists and it is not a folder. Checked before long work.
struct NewFile : CLI::Validator {
    NewFile();
};

/// Refuses empty values, such as unset shell variables, and inexact numbers. An option with one value may be repeated.
/// Call it after all options are declared.
void apply_common_rules(CLI::App& command);

/// Refuses two different values of an option with one value. @throws std::invalid_argument that names both
void check_repetitions(const CLI::App& command);

/// Returns the error message for unknown arguments, with the nearest option; empty if there are none.
std::string unknown_arguments(const CLI::App& command, const std::vector<std::string>& arguments);

std::string unknown_command(const std::string& name);

}  // namespace kvscope::cli
