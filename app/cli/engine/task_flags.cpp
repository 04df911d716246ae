#include "app/cli/engine/task_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "app/cli/option_validators.h"
#include "app/program/input_files.h"
#include "engine/prefill/prompt.h"

namespace kvscope::cli {
namespace {

using policies::Parameter;
using policies::ParameterKind;

bool is_whole_number(const Parameter& parameter) {
    return parameter.kind == ParameterKind::integer || parameter.kind == ParameterKind::integers;
}
bool is_list(const Parameter& parameter) {
    return parameter.kind == ParameterKind::integers || parameter.kind == ParameterKind::reals;
}

const char* type_name(const Parameter& parameter) {
    if (is_whole_number(parameter)) return "INT";
    if (parameter.kind == ParameterKind::real || parameter.kind == ParameterKind::reals) return "FLOAT";
    if (parameter.kind == ParameterKind::seed) return "UINT";
    return parameter.kind == ParameterKind::file ? "FILE" : "TEXT";
}

/// Returns why a number is out of range, in the words of all other options; otherwise an empty text.
std::string problem_of(const Parameter& parameter, std::string number) {
    const auto& range = parameter.range;
    if (is_whole_number(parameter))
        return WholeNumber(static_cast<int64_t>(range.low), std::isfinite(range.high)
                                                                ? static_cast<int64_t>(range.high)
                                                                : std::numeric_limits<int64_t>::max())(number);
    return parameter.kind == ParameterKind::reals ? RealNumber(range.low, range.high)(number) : "";
}

}  // namespace

void TaskFlags::declare(CLI::App& app, std::span<const engine::Task> tasks) {
    std::string n_new;
    for (const auto& task : tasks) {
        const std::string of_task = tasks.size() > 1 ? fmt::format(" ({})", task.name) : "";
        n_new += fmt::format("{}{}{}", n_new.empty() ? "" : ", ", task.n_new, of_task);
        for (const Parameter& parameter : task.parameters) {
            Flag& flag = flags_[parameter.name];
            flag.tasks.push_back(task.name);
            flag.parameters.push_back(parameter);
            const std::string fallback =
                parameter.automatic.empty() ? policies::to_text(parameter.fallback) : parameter.automatic;
            if (flag.option) {
                flag.option->description(flag.option->get_description() + "; " + parameter.help + of_task);
                flag.option->default_str(flag.option->get_default_str() + " or " + fallback);
                continue;
            }
            const std::string names = (parameter.name == "seed" ? "-s,--" : "--") + parameter.name;
            flag.option = is_list(parameter)
                              ? app.add_option(names, flag.list, parameter.help + of_task)->delimiter(',')
                              : app.add_option(names, flag.text, parameter.help + of_task);
            flag.option->type_name(type_name(parameter))->default_str(fallback);
            flag.option->check([&flag](const std::string& number) {
                std::string problem;
                for (const Parameter& declared : flag.parameters)
                    if (problem = problem_of(declared, number); problem.empty()) break;
                return problem;
            });
            if (parameter.kind == ParameterKind::choice) flag.option->transform(OneOf(parameter.choices));
        }
    }
    app.add_option("-n,--n-predict,--predict", n_new_, "Largest number of answer tokens")
        ->check(WholeNumber(1))
        ->default_str(n_new);
}

engine::TaskOptions TaskFlags::read(const engine::Task& task, policies::ParameterValues defaults) const {
    engine::TaskOptions options{std::move(defaults)};
    for (const auto& [name, flag] : flags_) {
        if (flag.option->count() == 0) continue;
        if (std::ranges::find(flag.tasks, task.name) == flag.tasks.end())
            throw std::invalid_argument(
                fmt::format("--{0} is an option of the task {1}, not of {2}: omit --{0}, or use "
                            "--task {1}",
                            name, flag.tasks.front(), task.name));
        const auto& declared = options.values.declared();
        const auto parameter = std::ranges::find(declared, name, &Parameter::name);
        const auto values = is_list(*parameter) ? flag.list : std::vector{flag.text};
        for (const std::string& value : values) {
            if (const std::string problem = problem_of(*parameter, value); !problem.empty())
                throw std::invalid_argument(fmt::format("--{}: {}", name, problem));
        }
        options.values.set(name, fmt::format("{}", fmt::join(values, ",")));
        if (parameter->kind != ParameterKind::file) continue;
        const std::string shown = program::display_name_of_input(flag.text);
        options.values.set(name, shown);  // for messages
        std::string& text = options.files[name] = program::read_text(flag.text);
        engine::require_utf8(text, shown);
    }
    return options;
}

}  // namespace kvscope::cli
