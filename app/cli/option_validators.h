#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kvscope::cli {

/// One of a few names, '_' and '-' alike; a near miss is told what it may have meant. For Option::transform, so that
/// what comes out is the name as it is listed.
struct OneOf : CLI::Validator {
    explicit OneOf(const std::vector<std::string>& names);
};

/// A whole number in a range.
struct WholeNumber : CLI::Validator {
    explicit WholeNumber(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
};

/// A number in a range.
struct RealNumber : CLI::Validator {
    RealNumber(double low, double high);
};

/// A file that can be made: its folder is there, and it is no folder itself. Before hours are spent on its contents.
struct NewFile : CLI::Validator {
    NewFile();
};

/// What holds for all options of a command alike; called when all are declared.
/// - An empty value is refused: no option means anything by it, and an unset shell variable should not go unnoticed.
/// - Numbers are read exactly: decimal, the whole text, in the range of their type, finite.
/// - An option with one value may be repeated with the same value; check_repetitions() refuses different ones.
void apply_common_rules(CLI::App& command);

/// That no option with one value was given twice with different values: none of them would be the one that was meant.
/// @throws std::invalid_argument that names the option and its values
void check_repetitions(const CLI::App& command);

/// What is wrong with arguments that no option of the command takes, with the option that was probably meant; empty
/// for none.
std::string unknown_arguments(const CLI::App& command, const std::vector<std::string>& arguments);

/// What is wrong with a first argument that is no command.
std::string unknown_command(const std::string& name);

}  // namespace kvscope::cli
