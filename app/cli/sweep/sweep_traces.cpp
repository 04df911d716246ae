#include "app/cli/sweep/sweep_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "app/program/engine/run_job.h"
#include "app/program/find_model.h"
#include "common/sha256.h"
#include "common/split.h"
#include "engine/options/run_options.h"
#include "engine/tasks/api/task.h"
#include "policies/api/budget.h"
#include "policies/api/parameters.h"

namespace kvscope::cli {
namespace {

using Settings = std::vector<SweepSetting>;

constexpr const char* options_of_prompts[] = {"prompt", "prompt-file", "prompt-from"};

bool is_set(const Settings& settings, std::string_view option) {
    return std::ranges::find(settings, option, &SweepSetting::option) != settings.end();
}

template <class T>
void keep_first_of_equal(std::vector<T>& list) {
    std::vector<T> kept;
    for (T& one : list)
        if (std::ranges::find(kept, one) == kept.end()) kept.push_back(std::move(one));
    list = std::move(kept);
}

/// Returns the values of an axis that are separated by commas. @param is_number whether ranges such as 0-4+1 are read
std::vector<std::string> axis_values(const Settings& settings, std::string_view option, bool is_number) {
    const auto number = policies::integer_parameter(std::string(option), 0, {.low = 0}, "");
    std::vector<std::string> values;
    for (const SweepSetting& setting : settings) {
        if (setting.option != option || !setting.task.empty()) continue;
        for (const std::string& list : setting.values) {
            for (const std::string_view piece : split(list, ',')) {
                try {
                    const auto range = is_number ? number.values_of_range(piece) : std::nullopt;
                    std::ranges::move(range.value_or(std::vector{std::string(piece)}), std::back_inserter(values));
                } catch (const std::exception& error) {
                    throw std::invalid_argument(setting.origin + ": " + error.what());
                }
            }
        }
    }
    keep_first_of_equal(values);
    return values;
}

/// Returns a name for files: the last part of the model's path, without ".gguf".
std::string file_name_of_model(const std::string& model) {
    std::string path = model;
    if (model.empty()) {
        try {
            path = program::find_model("").string();
        } catch (const std::exception&) {
            path = "default";  // the trace reports why the model is missing
        }
    }
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    std::string name = std::filesystem::path(path).filename().string();
    if (name.ends_with(".gguf")) name.erase(name.size() - 5);
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; }, '-');
    return name;
}

/// Returns a different file name for each model. Models with the same name get a hash of their path.
std::map<std::string, std::string> file_names_of_models(const std::vector<std::string>& models) {
    std::map<std::string, std::string> names;
    std::map<std::string, int> count;
    for (const std::string& model : models) ++count[names[model] = file_name_of_model(model)];
    for (auto& [model, name] : names)
        if (count[name] > 1) name += "-" + sha256_of(model).substr(0, 6);
    return names;
}

bool has_parameter(const engine::Task& task, const std::string& option) {
    return std::ranges::any_of(task.parameters, [&](const policies::Parameter& parameter) {
        std::string name = parameter.name;
        std::ranges::replace(name, '_', '-');
        return name == option;
    });
}

/// Returns the seed of a trace without the setting. @param task empty for prompts
std::string default_seed(const std::string& task) {
    if (task.empty()) return std::to_string(engine::RunOptions{}.seed);
    return policies::to_text(
        std::ranges::find(engine::task_named(task).parameters, "seed", &policies::Parameter::name)->fallback);
}

/// Whether a setting applies to the traces of a task. A setting of the task alone replaces that of all tasks. An option
/// of other tasks of the sweep does not apply.
bool applies_to(const Settings& settings, const SweepSetting& setting, const std::string& task,
                const std::vector<std::string>& tasks) {
    if (!setting.task.empty()) return setting.task == task;
    const auto replaces = [&](const SweepSetting& one) { return one.task == task && one.option == setting.option; };
    if (std::ranges::any_of(settings, replaces)) return false;
    const auto has = [&](const std::string& name) { return has_parameter(engine::task_named(name), setting.option); };
    return has(task) || std::ranges::none_of(tasks, has);
}

void append_setting(std::vector<std::string>& arguments, const SweepSetting& setting) {
    const bool is_flag = trace_option(setting.option).is_flag;
    for (const std::string& value : setting.values) {
        if (!is_flag) arguments.push_back(fmt::format("--{}={}", setting.option, value));
        if (is_flag && value == "true") arguments.push_back("--" + setting.option);
    }
}

/// Returns the number of runs of each prompt. @throws std::invalid_argument for malformed policies and budgets
size_t count_runs(std::vector<std::string> policies, std::vector<std::string> budgets) {
    program::RunJob job;
    job.policies = std::move(policies);
    job.budgets = std::move(budgets);
    return program::run_plans_of_job(job).size();
}

/// Checks one setting alone, so that the message names its line.
void check_setting(const SweepSetting& setting, const std::vector<std::string>& arguments_before) {
    try {
        auto arguments = arguments_before;
        append_setting(arguments, setting);
        check_command_line(arguments);
        if (setting.option == "policy") (void)count_runs(setting.values, {"64"});
        if (setting.option == "budget")
            for (const std::string& text : setting.values) (void)policies::parse_budgets(text);
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(fmt::format("{}: {}", setting.origin, error.what()));
    }
}

std::vector<std::string> tasks_of_sweep(const Settings& settings, bool runs_prompts) {
    std::vector<std::string> tasks = axis_values(settings, "task", false);
    if (runs_prompts && !tasks.empty())
        throw std::invalid_argument(fmt::format("{}: a sweep runs either tasks or prompts: remove task, or the prompts",
                                                std::ranges::find(settings, "task", &SweepSetting::option)->origin));
    if (runs_prompts) return {""};
    if (tasks.empty()) return {"niah"};
    for (std::string& task : tasks) {
        try {
            task = engine::task_named(task).name;
        } catch (const std::exception& error) {
            throw std::invalid_argument(fmt::format(
                "{}: {}", std::ranges::find(settings, "task", &SweepSetting::option)->origin, error.what()));
        }
    }
    return tasks;
}

bool is_axis_of_traces(const std::string& option) { return option == "model" || option == "task" || option == "seed"; }

}  // namespace

std::vector<SweepTrace> traces_of_sweep(const std::vector<SweepSetting>& settings) {
    const bool runs_prompts =
        std::ranges::any_of(options_of_prompts, [&](const char* option) { return is_set(settings, option); });
    const std::vector<std::string> tasks = tasks_of_sweep(settings, runs_prompts);
    std::vector<std::string> models = values_of_setting(settings, "model");
    keep_first_of_equal(models);
    if (models.empty()) models = {""};
    const auto names = file_names_of_models(models);
    const std::vector<std::string> seeds = axis_values(settings, "seed", true);

    std::vector<SweepTrace> traces;
    for (const std::string& model : models) {
        for (const std::string& task : tasks) {
            std::vector<std::string> begin = {task.empty() ? "run" : "eval"};
            if (!task.empty()) begin.push_back("--task=" + task);
            std::vector<std::string> checked = begin;
            checked.emplace_back("--output=t.h5");
            std::vector<std::string> end;
            for (const SweepSetting& setting : settings) {
                if (is_axis_of_traces(setting.option) && setting.task.empty()) continue;
                if (!task.empty() && !applies_to(settings, setting, task, tasks)) continue;
                check_setting(setting, checked);
                append_setting(end, setting);
            }
            const bool has_seed = task.empty() || has_parameter(engine::task_named(task), "seed");
            for (const std::string& seed : seeds.empty() || !has_seed ? std::vector<std::string>{""} : seeds) {
                SweepTrace trace{names.at(model) + "-" + (task.empty() ? "prompts" : task), begin};
                if (!model.empty()) trace.arguments.push_back("--model=" + model);
                if (has_seed) trace.name += "-seed-" + (seed.empty() ? default_seed(task) : seed);
                if (!seed.empty()) {
                    const auto origin = std::ranges::find(settings, "seed", &SweepSetting::option)->origin;
                    check_setting({"seed", {seed}, origin}, checked);
                    trace.arguments.push_back("--seed=" + seed);
                }
                trace.arguments.insert(trace.arguments.end(), end.begin(), end.end());
                auto whole = trace.arguments;
                whole.emplace_back("--output=t.h5");
                check_command_line(whole);
                trace.n_runs = count_runs(values_of_setting(settings, "policy"), values_of_setting(settings, "budget"));
                traces.push_back(std::move(trace));
            }
        }
    }
    return traces;
}

}  // namespace kvscope::cli
