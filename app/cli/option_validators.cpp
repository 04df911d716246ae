#include "app/cli/option_validators.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

#include "app/cli/command.h"
#include "policies/registry/name_matching.h"

namespace kvscope::cli {
namespace {

const std::string completed = "completed";  // name of the validators whose values shells complete

template <class Number>
std::optional<Number> whole_text_as(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string out_of_range(std::string_view found, const std::string& expected) {
    return fmt::format("expected {}, found {}", expected, found);
}

bool is_whole(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Describes the expected value. Gives the number of digits that a type can hold, not the limits of the type.
template <class Number>
std::string expected_of_type(std::string_view found, int64_t low) {
    const std::string at_least = low == std::numeric_limits<int64_t>::min() ? "" : fmt::format(", at least {}", low);
    const bool is_too_low = found.starts_with('-') && !at_least.empty();
    if (!is_whole(found) || is_too_low)
        return at_least.empty() ? "a whole number in digits" : "a whole number" + at_least;
    return fmt::format("a whole number of at most {} digits{}", std::numeric_limits<Number>::digits10, at_least);
}

std::string range_text(std::string_view found, int64_t low, int64_t high) {
    if (high == std::numeric_limits<int64_t>::max()) return expected_of_type<int64_t>(found, low);
    if (high == std::numeric_limits<int32_t>::max()) return expected_of_type<int32_t>(found, low);
    return fmt::format("a whole number from {} to {}", low, high);
}

/// Accepts the whole range of a type. CLI11 alone would clamp larger numbers and read 010 as 8.
template <class Number>
std::string read_whole_number(std::string& text) {
    const std::string_view digits = std::string_view(text).substr(text.starts_with('+') ? 1 : 0);
    const auto value = whole_text_as<Number>(digits);
    if (!value) {
        if constexpr (std::is_unsigned_v<Number>)
            return out_of_range(text, "a whole number, at least 0 and below 2^64");
        return out_of_range(text, expected_of_type<Number>(digits, std::numeric_limits<int64_t>::min()));
    }
    text = std::to_string(*value);
    return {};
}

std::string read_real(std::string& text) {
    const auto value = whole_text_as<double>(std::string_view(text).substr(text.starts_with('+') ? 1 : 0));
    return value && std::isfinite(*value) ? "" : out_of_range(text, "a number");
}

CLI::Validator validator(std::string (*check)(std::string&)) { return {check, "", ""}; }

std::optional<CLI::Validator> check_of_type(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    if (type.starts_with("UINT")) return validator(read_whole_number<uint64_t>);
    if (type.starts_with("INT")) return validator(read_whole_number<int64_t>);
    if (type.starts_with("FLOAT")) return validator(read_real);
    return std::nullopt;
}

/// Returns " Did you mean --budget?" or an empty text. Ignores the argument's leading dashes and its value after '='.
std::string option_suggestion(const CLI::App& command, const std::string& argument) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        for (const auto& name : option->get_lnames()) names.push_back(name);
    const size_t begin = std::min(argument.find_first_not_of('-'), argument.size());
    const size_t end = std::min(argument.find('='), argument.size());
    std::string meant;
    for (const auto& name : policies::nearest_names(argument.substr(begin, end - std::min(begin, end)), names))
        meant += (meant.empty() ? " Did you mean --" : " or --") + name;
    return meant.empty() ? "" : meant + "?";
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument.front() == '-'; }

}  // namespace

OneOf::OneOf(const std::vector<std::string>& names) : CLI::Validator("") {
    func_ = [names](std::string& text) -> std::string {
        for (const auto& name : names) {
            if (!policies::same_name(name, text)) continue;
            text = name;
            return {};
        }
        return fmt::format("expected one of {}; found '{}'.{}", policies::joined(names), text,
                           policies::did_you_mean(text, names));
    };
    description(fmt::format("{{{}}}", fmt::join(names, ",")));
    name(completed);
}

void replace_names(CLI::Option& option, const std::vector<std::string>& names) {
    *option.get_validator(completed) = OneOf(names);
}

CLI::Option* suggest(CLI::Option* option, const std::vector<std::string>& values) {
    if (values.empty()) return option;
    // An inactive validator accepts every value, and the help does not print its description.
    OneOf accepts_all(values);
    accepts_all.active(false);
    return option->check(accepts_all);
}

std::vector<std::string> suggested_values(CLI::Option& option) {
    try {
        const CLI::Validator& names = *option.get_validator(completed);
        const std::string in_braces = names.active(true).get_description();
        return CLI::detail::split(in_braces.substr(1, in_braces.size() - 2), ',');
    } catch (const CLI::OptionNotFound&) {
        return {};
    }
}

WholeNumber::WholeNumber(int64_t low, int64_t high) : CLI::Validator("") {
    func_ = [low, high](std::string& text) -> std::string {
        const auto value = whole_text_as<int64_t>(text);
        return value && *value >= low && *value <= high ? "" : out_of_range(text, range_text(text, low, high));
    };
}

RealNumber::RealNumber(double low, double high) : CLI::Validator("") {
    func_ = [low, high](std::string& text) -> std::string {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
        return is_number && value >= low && value <= high
                   ? ""
                   : out_of_range(text, fmt::format("a number from {} to {}", low, high));
    };
}

NewFile::NewFile() : CLI::Validator("") {
    func_ = [](std::string& text) -> std::string {
        const std::filesystem::path path(text);
        std::error_code error;
        if (std::filesystem::is_directory(path, error)) return text + " is a folder: give the name of a file";
        const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
        return std::filesystem::is_directory(folder, error) ? "" : text + ": no folder " + folder.string();
    };
}

void add_value_checks_to_options(CLI::App& command) {
    const CLI::Validator not_empty(
        [](std::string& text) { return text.empty() ? std::string("expected a value, found an empty text ('')") : ""; },
        "", "");
    for (CLI::Option* option : command.get_options()) {
        if (option->get_items_expected_max() == 0) continue;
        if (option->get_items_expected_max() == 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        // transform() puts this check before the existing checks.
        if (auto check = check_of_type(*option)) option->transform(*std::move(check));
        option->transform(not_empty);
    }
}

void check_repeated_options(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_items_expected_max() != 1) continue;
        const auto& values = option->results();
        const auto other =
            std::ranges::find_if(values, [&](const std::string& value) { return value != values.front(); });
        if (other == values.end()) continue;
        throw std::invalid_argument(fmt::format("{} takes one value, but was given '{}' and '{}': keep one of them",
                                                option->get_name(), values.front(), *other));
    }
}

std::string unknown_arguments(const CLI::App& command, const std::vector<std::string>& arguments) {
    std::string options, others;
    for (const auto& argument : arguments) {
        if (is_option(argument)) {
            const std::string name = argument.substr(0, argument.find('='));
            options += fmt::format("{}unknown option {}.{}", options.empty() ? "" : "\n", name,
                                   option_suggestion(command, argument));
        } else {
            others += fmt::format("{}'{}'", others.empty() ? "" : ", ", argument);
        }
    }
    // The arguments after an unknown option are probably its values.
    if (!options.empty() || others.empty()) return options;
    return fmt::format("unexpected argument {}", others);
}

std::string unknown_command(const std::string& name) {
    std::vector<std::string> names;
    for (const Command& command : commands())
        if (!command.hidden) names.push_back(command.name);
    std::error_code error;
    if (std::filesystem::exists(name, error))
        return fmt::format(
            "unknown command '{0}', but a file of this name exists: `kvscope view {0}` opens it in the app, `kvscope "
            "inspect {0}` describes it",
            name);
    return fmt::format("unknown command '{}'.{} Commands: {}", name, policies::did_you_mean(name, names),
                       policies::joined(names));
}

}  // namespace kvscope::cli
