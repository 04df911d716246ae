#include "app/cli/sweep/sweep_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/program/version.h"
#include "app/program/yaml_file.h"
#include "common/split.h"
#include "engine/tasks/api/task.h"
#include "policies/registry/feasibility.h"
#include "policies/registry/name_matching.h"
#include "policies/registry/registry.h"

namespace kvscope::cli {
namespace {

bool is_axis(std::string_view option) { return option == "model" || option == "task" || option == "seed"; }

/// Returns the task's name as it is declared, or an unknown name unchanged, which traces_of_sweep() refuses.
std::string declared_name_of_task(std::string_view name) {
    const auto found = std::ranges::find_if(
        engine::tasks(), [&](const engine::Task& task) { return policies::same_name(task.name, name); });
    return found == engine::tasks().end() ? std::string(name) : found->name;
}

/// Adds the declared names in a list such as "niah,ruler", except names that are already there.
void add_tasks(std::vector<std::string>& tasks, std::string_view list) {
    for (const std::string_view one : split(list, ','))
        if (std::string name = declared_name_of_task(one); std::ranges::find(tasks, name) == tasks.end())
            tasks.push_back(std::move(name));
}

class SweepFile {
 public:
    explicit SweepFile(const std::filesystem::path& path) : file_(path, "policy: [snapkv, h2o]") {
        read_keys(file_.root(), "");
    }

    std::vector<SweepSetting> settings;

 private:
    void read_keys(const YAML::Node& map, const std::string& task) {
        std::set<std::string> names;
        for (const auto& entry : map) {
            if (!entry.first.IsScalar()) file_.fail(entry.first, "expected the name of an option before ':'");
            const std::string& key = entry.first.Scalar();
            try {
                const TraceOption& option = trace_option(key);
                if (!names.insert(option.name).second)
                    throw std::invalid_argument(fmt::format("{} is set twice: keep one of them", option.name));
                if (!task.empty() && (is_axis(option.name) || option.name == "policy" || option.name == "budget"))
                    throw std::invalid_argument(fmt::format("{} applies to all tasks: move it out of {}", key, task));
                read_values(option, entry.second, task);
            } catch (const std::invalid_argument& error) {
                if (std::string_view(error.what()).starts_with(file_.path())) throw;
                file_.fail(entry.first, error.what());
            }
        }
    }

    void read_values(const TraceOption& option, const YAML::Node& value, const std::string& task) {
        SweepSetting setting{option.name, {}, file_.place(value), task};
        if (value.IsSequence()) {
            for (const YAML::Node& element : value) read_value(option, element, setting);
        } else {
            read_value(option, value, setting);
        }
        if (setting.values.empty()) file_.fail(value, fmt::format("{} has no value", option.name));
        if (setting.values.size() > 1 && !option.is_list && !is_axis(option.name))
            file_.fail(value, fmt::format("{} takes one value, found {}", option.name, setting.values.size()));
        settings.push_back(std::move(setting));
    }

    void read_value(const TraceOption& option, const YAML::Node& value, SweepSetting& setting) {
        if (value.IsMap() && option.name == "task") {
            for (const auto& entry : value) {
                if (!entry.first.IsScalar()) file_.fail(entry.first, "expected the name of a task before ':'");
                const std::string name = declared_name_of_task(entry.first.Scalar());
                add_tasks(setting.values, name);
                if (entry.second.IsNull()) continue;
                if (!entry.second.IsMap())
                    file_.fail(entry.second,
                               fmt::format("expected settings of the task {}, such as `samples: 5`", name));
                if (std::ranges::find(settings, name, &SweepSetting::task) != settings.end())
                    file_.fail(entry.first, fmt::format("the task {} has settings twice: keep one list of them", name));
                read_keys(entry.second, name);
            }
            return;
        }
        if (!value.IsScalar() || value.Scalar().empty()) {
            const char* found = value.IsMap() ? "keys" : value.IsSequence() ? "a list" : "nothing";
            file_.fail(value, fmt::format("expected a value of {}, found {}", option.name, found));
        }
        if (option.is_flag && value.Scalar() != "true" && value.Scalar() != "false")
            file_.fail(value, fmt::format("expected {}: true or false, found '{}'", option.name, value.Scalar()));
        if (option.name == "task")
            add_tasks(setting.values, value.Scalar());
        else
            setting.values.push_back(value.Scalar());
    }

    program::YamlFile file_;
};

void write_sweep_values(YAML::Emitter& out, const SweepSetting& setting) {
    out << YAML::Key << setting.option << YAML::Value;
    if (setting.values.size() == 1) {
        out << setting.values.front();
        return;
    }
    out << YAML::Flow << setting.values;
}

/// Writes each task with its own settings.
void write_sweep_tasks(YAML::Emitter& out, const std::vector<SweepSetting>& settings, const SweepSetting& tasks) {
    const auto is_of_task = [](const SweepSetting& one) { return !one.task.empty(); };
    if (std::ranges::none_of(settings, is_of_task)) {
        write_sweep_values(out, tasks);
        return;
    }
    out << YAML::Key << tasks.option << YAML::Value << YAML::BeginSeq;
    for (const std::string& task : tasks.values) {
        if (std::ranges::none_of(settings, [&](const SweepSetting& one) { return one.task == task; })) {
            out << task;
            continue;
        }
        out << YAML::BeginMap << YAML::Key << task << YAML::Value << YAML::BeginMap;
        for (const SweepSetting& setting : settings)
            if (setting.task == task) write_sweep_values(out, setting);
        out << YAML::EndMap << YAML::EndMap;
    }
    out << YAML::EndSeq;
}

/// Returns a list of policies with absolute paths of files: "headkv:importance=/data/heads.json". Returns a list with
/// an unknown policy unchanged: the check of the settings names its line in the file.
std::string with_absolute_paths(const std::string& list) try {
    std::vector<std::string> texts;
    for (const std::string& text : policies::split_policies(list)) {
        std::vector<policies::PolicySpec> specs = policies::parse_policies(text);
        const policies::Parameter* file = policies::find_file_parameter(specs.front());
        if (!file) {
            texts.push_back(text);
            continue;
        }
        for (policies::PolicySpec& spec : specs) {
            std::error_code error;
            const std::filesystem::path path = spec.values.text(file->name);
            if (std::filesystem::exists(path, error))
                spec.values.set(file->name, std::filesystem::absolute(path).lexically_normal().string());
            texts.push_back(spec.label());
        }
    }
    return fmt::format("{}", fmt::join(texts, ","));
} catch (const policies::ParameterError&) {
    return list;
}

}  // namespace

std::vector<SweepSetting> read_sweep_file(const std::filesystem::path& path) { return SweepFile(path).settings; }

std::vector<SweepSetting> with_command_line(std::vector<SweepSetting> settings, const GivenOptions& given) {
    const auto replace = [&](const std::string& option, std::vector<std::string> values) {
        if (option == "task") {
            std::vector<std::string> tasks;
            for (const std::string& list : values) add_tasks(tasks, list);
            values = std::move(tasks);
        }
        std::erase_if(settings, [&](const SweepSetting& one) {
            const bool is_of_other_task =
                option == "task" && !one.task.empty() && std::ranges::find(values, one.task) == values.end();
            return one.option == option || is_of_other_task;
        });
        settings.push_back({option, std::move(values), "--" + option});
    };
    for (const auto& [name, values] : given.values) {
        if (values.empty()) continue;
        if (values.size() > 1 && !is_axis(name) && !trace_option(name).is_list)
            throw std::invalid_argument(
                fmt::format("--{} takes one value, but was given '{}' and '{}': keep one of them", name, values.front(),
                            values[1]));
        replace(name, values);
    }
    for (const auto& [name, is_set] : given.flags)
        if (is_set) replace(name, {"true"});
    return settings;
}

void make_paths_absolute(std::vector<SweepSetting>& settings) {
    for (SweepSetting& setting : settings) {
        if (setting.option == "policy")
            for (std::string& value : setting.values) value = with_absolute_paths(value);
        const std::string& type = trace_option(setting.option).type;
        const bool is_trace = type.starts_with("TRACE");
        if (!is_trace && !type.starts_with("MODEL") && !type.starts_with("FILE")) continue;
        for (std::string& value : setting.values) {
            const auto path_before = [&](size_t end) {
                std::error_code error;
                const std::filesystem::path path = value.substr(0, end);
                if (end == 0 || !std::filesystem::exists(path, error)) return false;
                value = std::filesystem::absolute(path).lexically_normal().string() + value.substr(end);
                return true;
            };
            if (path_before(value.size()) || !is_trace) continue;
            for (size_t colon = value.find(':'); colon != std::string::npos; colon = value.find(':', colon + 1))
                if (path_before(colon)) break;  // "t.h5:0", a prompt of a trace
        }
    }
}

std::string sweep_file_text(const std::vector<SweepSetting>& settings) {
    YAML::Emitter out;
    out << YAML::BeginMap;
    for (const SweepSetting& setting : settings) {
        if (setting.option == "task")
            write_sweep_tasks(out, settings, setting);
        else if (setting.task.empty())
            write_sweep_values(out, setting);
    }
    out << YAML::EndMap;
    std::string text = fmt::format("# Settings of a sweep, with those of its command line. kvscope {}\n{}\n",
                                   program::version(), out.c_str());
    text += "\n# Defaults of the other options:\n";
    for (const TraceOption& option : trace_options()) {
        const bool is_set =
            std::ranges::any_of(settings, [&](const SweepSetting& one) { return one.option == option.name; });
        if (!is_set && !option.fallback.empty()) text += fmt::format("# {}: {}\n", option.name, option.fallback);
    }
    return text;
}

std::vector<std::string> values_of_setting(const std::vector<SweepSetting>& settings, std::string_view option) {
    std::vector<std::string> values;
    for (const SweepSetting& setting : settings)
        if (setting.option == option && setting.task.empty())
            values.insert(values.end(), setting.values.begin(), setting.values.end());
    return values;
}

}  // namespace kvscope::cli
