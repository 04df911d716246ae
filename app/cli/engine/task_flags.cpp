#include "app/cli/engine/task_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "app/cli/option_validators.h"

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
    if (is_list(parameter)) return "LIST";  // may contain ranges, which no number option accepts
    if (is_whole_number(parameter)) return "INT";
    if (parameter.kind == ParameterKind::real) return "FLOAT";
    if (parameter.kind == ParameterKind::seed) return "UINT";
    return parameter.kind == ParameterKind::file ? "FILE" : "TEXT";
}

/// Returns the error message of all number options if the number is out of range; otherwise an empty text.
std::string problem_of(const Parameter& parameter, std::string number) {
    const auto& range = parameter.range;
    if (is_whole_number(parameter))
        return WholeNumber(static_cast<int64_t>(range.low), std::isfinite(range.high)
                                                                ? static_cast<int64_t>(range.high)
                                                                : std::numeric_limits<int64_t>::max())(number);
    return parameter.kind == ParameterKind::reals ? RealNumber(range.low, range.high)(number) : "";
}

std::vector<std::string> with_values_of_ranges(const Parameter& parameter, std::span<const std::string> list) {
    std::vector<std::string> values;
    for (const std::string& text : list)
        std::ranges::move(parameter.values_of_range(text).value_or(std::vector{text}), std::back_inserter(values));
    return values;
}

std::string default_text(const Parameter& parameter) {
    const std::string text = parameter.automatic.empty() ? policies::to_text(parameter.fallback) : parameter.automatic;
    return text.empty() ? "none" : text;
}

void add_task(std::vector<TextOfTasks>& texts, const std::string& text, const std::string& task) {
    const auto found = std::ranges::find(texts, text, &TextOfTasks::text);
    (found == texts.end() ? texts.emplace_back(text) : *found).tasks.push_back(task);
}

/// Returns "2 (helmet), 5 (niah, ruler)", or the text alone if all tasks have the same.
std::string joined_texts(std::span<const TextOfTasks> texts) {
    if (texts.size() == 1) return texts.front().text;
    std::vector<std::string> parts;
    for (const auto& [text, tasks] : texts) parts.push_back(fmt::format("{} ({})", text, fmt::join(tasks, ", ")));
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// Returns the description of an option for the help of all tasks.
std::string description_of(std::span<const TextOfTasks> helps) {
    if (helps.size() == 1) return fmt::format("{} ({})", helps.front().text, fmt::join(helps.front().tasks, ", "));
    std::vector<std::string> tasks;
    for (const TextOfTasks& help : helps) std::ranges::copy(help.tasks, std::back_inserter(tasks));
    return fmt::format("Option of {}; `--task NAME --help` describes it", fmt::join(tasks, ", "));
}

[[noreturn]] void refuse_option_of_another_task(const std::string& name, const engine::Task& task) {
    const auto other = std::ranges::find_if(engine::tasks(), [&](const engine::Task& one) {
        return std::ranges::find(one.parameters, name, &Parameter::name) != one.parameters.end();
    });
    throw std::invalid_argument(fmt::format(
        "--{0} is an option of the task {1}, not of {2}: omit --{0}, or use --task {1}", name, other->name, task.name));
}

}  // namespace

void TaskFlags::declare(CLI::App& app, std::span<const engine::Task> tasks) {
    std::vector<TextOfTasks> n_new;
    for (const auto& task : tasks) {
        add_task(n_new, std::to_string(task.n_new), task.name);
        for (const Parameter& parameter : task.parameters) {
            Flag& flag = flags_[parameter.name];
            for (const std::string& choice : parameter.choices)
                if (std::ranges::find(flag.choices, choice) == flag.choices.end()) flag.choices.push_back(choice);
            add_task(flag.helps, parameter.help, task.name);
            add_task(flag.defaults, default_text(parameter), task.name);
            if (flag.option) continue;
            std::string name = parameter.name;
            std::ranges::replace(name, '_', '-');  // arguments_in_canonical_form() does the same
            const std::string names = (name == "seed" ? "-s,--" : "--") + name;
            flag.option = is_list(parameter) ? app.add_option(names, flag.list)->delimiter(',')
                                             : app.add_option(names, flag.text);
            flag.option->type_name(type_name(parameter));
        }
    }
    for (const auto& [name, flag] : flags_) {
        if (!flag.choices.empty()) flag.option->transform(OneOf(flag.choices));
        flag.option->default_str(joined_texts(flag.defaults));
        flag.option->description(tasks.size() == 1 ? flag.helps.front().text : description_of(flag.helps));
    }
    n_new_option_ = app.add_option("-n,--n-predict,--predict", n_new_, "Largest number of answer tokens")
                        ->check(WholeNumber(1))
                        ->default_str(joined_texts(n_new));
}

void TaskFlags::describe_only(const engine::Task& task) {
    for (const auto& [name, flag] : flags_) {
        const auto parameter = std::ranges::find(task.parameters, name, &Parameter::name);
        if (parameter == task.parameters.end()) {
            flag.option->group("");
            continue;
        }
        flag.option->description(parameter->help)->default_str(default_text(*parameter));
        if (!parameter->choices.empty()) replace_names(*flag.option, parameter->choices);
    }
    n_new_option_->default_str(std::to_string(task.n_new));
}

policies::ParameterValues TaskFlags::read(const engine::Task& task, policies::ParameterValues defaults) const {
    policies::ParameterValues values = std::move(defaults);
    for (const auto& [name, flag] : flags_) {
        if (flag.option->count() == 0) continue;
        if (!values.has(name)) refuse_option_of_another_task(name, task);
        const Parameter& parameter = *std::ranges::find(values.declared(), name, &Parameter::name);
        const auto texts = is_list(parameter) ? with_values_of_ranges(parameter, flag.list) : std::vector{flag.text};
        for (const std::string& text : texts) {
            if (const std::string problem = problem_of(parameter, text); !problem.empty())
                throw CLI::ValidationError("--" + name, problem);
        }
        values.set(name, fmt::format("{}", fmt::join(texts, ",")));
    }
    return values;
}

}  // namespace kvscope::cli
