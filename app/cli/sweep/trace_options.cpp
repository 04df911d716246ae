#include "app/cli/sweep/trace_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "app/cli/arguments.h"
#include "app/cli/command.h"
#include "app/cli/option_validators.h"
#include "policies/registry/name_matching.h"

namespace kvscope::cli {
namespace {

/// Options that a sweep sets itself, or that do not describe a trace.
const std::set<std::string_view> options_of_one_command = {"help",    "output", "shard",    "force",      "quiet",
                                                           "timings", "format", "csv-safe", "prediction", "outcome"};

const Command& command_of_traces(std::string_view name) {
    const auto found = std::ranges::find(commands(), name, &Command::name);
    if (found == commands().end()) throw std::logic_error("no command " + std::string(name));
    return *found;
}

TraceOption describe_option(CLI::Option& option) {
    TraceOption described{.name = option.get_lnames().front()};
    for (const auto* names : {&option.get_lnames(), &option.get_snames()})
        for (const std::string& name : *names)
            if (name != described.name) described.others.push_back(name);
    if (option.get_positional()) described.others.push_back(option.get_name(true));
    described.help = option.get_description();
    described.is_flag = option.get_items_expected_max() == 0;
    described.is_list = option.get_items_expected_max() > 1;
    if (described.is_flag) return described;
    described.type = option.get_type_name();
    described.fallback = option.get_default_str();
    described.suggestions = suggested_values(option);
    return described;
}

std::vector<TraceOption> find_options_of_commands() {
    std::vector<TraceOption> found;
    const auto is_taken = [&](const std::string& name) {
        return std::ranges::any_of(found, [&](const TraceOption& one) { return one.has_name(name); });
    };
    for (const char* name : {"eval", "run"}) {
        CLI::App app;
        const auto action = command_of_traces(name).declare(app);
        for (CLI::Option* option : app.get_options()) {
            if (option->get_lnames().empty()) continue;
            if (options_of_one_command.contains(option->get_lnames().front())) continue;
            TraceOption described = describe_option(*option);
            if (is_taken(described.name)) continue;
            std::erase_if(described.others, is_taken);
            found.push_back(std::move(described));
        }
    }
    return found;
}

}  // namespace

bool TraceOption::has_name(std::string_view key) const {
    return policies::same_name(name, key) ||
           std::ranges::any_of(others, [&](const std::string& other) { return policies::same_name(other, key); });
}

const std::vector<TraceOption>& trace_options() {
    static const std::vector<TraceOption> options = find_options_of_commands();
    return options;
}

const TraceOption* find_trace_option(std::string_view key) {
    const auto found =
        std::ranges::find_if(trace_options(), [&](const TraceOption& option) { return option.has_name(key); });
    return found == trace_options().end() ? nullptr : &*found;
}

const TraceOption& trace_option(std::string_view key) {
    if (const TraceOption* option = find_trace_option(key)) return *option;
    if (options_of_one_command.contains(key))
        throw std::invalid_argument(fmt::format("{} cannot be set in a file: use it on the command line", key));
    std::vector<std::string> names;
    for (const TraceOption& option : trace_options()) {
        names.push_back(option.name);
        for (const std::string& other : option.others)
            if (other.size() > 1) names.push_back(other);
    }
    throw std::invalid_argument(fmt::format("unknown key '{}'.{} `kvscope sweep --help` lists the keys", key,
                                            policies::did_you_mean(key, names)));
}

void declare_trace_options(CLI::App& app, GivenOptions& given) {
    for (const TraceOption& option : trace_options()) {
        std::string flags = "--" + option.name;
        for (const std::string& other : option.others) flags += (other.size() == 1 ? ",-" : ",--") + other;
        CLI::Option* declared = nullptr;
        if (option.is_flag) {
            declared = app.add_flag(flags, given.flags[option.name], option.help);
        } else {
            declared = app.add_option(flags, given.values[option.name], option.help)
                           ->allow_extra_args(false)
                           ->default_str(option.fallback)
                           ->type_name(option.name == "seed" ? "N[,N…]" : option.type);
            suggest(declared, option.suggestions);
        }
        declared->group("Settings of the traces, as in the file");
    }
}

void check_command_line(std::vector<std::string> arguments) {
    CLI::App app;
    const auto action = command_of_traces(arguments.front()).declare(app);
    add_value_checks_to_options(app);
    arguments.erase(arguments.begin());
    arguments = arguments_in_canonical_form(std::move(arguments));
    std::ranges::reverse(arguments);
    try {
        app.parse(arguments);
    } catch (const CLI::ParseError& error) {
        const std::string unknown = unknown_arguments(app, app.remaining(true));
        throw std::invalid_argument(unknown.empty() ? error.what() : unknown);
    }
    check_repeated_options(app);
}

}  // namespace kvscope::cli
