#include "analysis/results/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/row_settings.h"
#include "common/bounded_json.h"
#include "policies/registry/name_matching.h"
#include "policies/registry/policy_from_record.h"

namespace kvscope::analysis {
namespace {

SettingValue named_value(std::string label) { return {label.empty() ? unknown_label : std::move(label), {0, 0}}; }

SettingValue number_value(double number, std::string label) {
    if (std::isnan(number)) return {unknown_label, {1, 0}};
    return {std::move(label), {0, number}, number};
}

SettingValue budget_value(const Result& result) {
    if (result.is_full()) return {result.budget, {-1, 0}};
    const std::pair<int, double> place = budget_place(result.budget);
    return {result.budget, place, place.second};
}

SettingValue question_value(const Result& result) {
    constexpr std::array labels = {unknown_label, "question hidden", "question seen"};
    const std::int64_t seen = std::clamp<std::int64_t>(result.row.question_seen, -1, 1);
    return {labels[static_cast<size_t>(seen + 1)], {0, -static_cast<double>(seen)}};
}

SettingValue value_of_json(const nlohmann::json& value) {
    if (value.is_number()) return number_value(value.get<double>(), value.dump());
    if (value.is_boolean()) return named_value(value.get<bool>() ? "on" : "off");
    if (value.is_string()) return named_value(value.get<std::string>());
    return named_value(value.dump());
}

/// Returns the task of all results; "" if they have several.
std::string only_task(std::span<const Result> results) {
    if (results.empty()) return "";
    const std::string& task = results.front().task;
    return std::ranges::all_of(results, [&](const Result& result) { return result.task == task; }) ? task : "";
}

using Parameters = std::map<std::string, SettingValue>;

Parameters parameters_of(const std::string& parameters_json) {
    Parameters parameters;
    const nlohmann::json object = bounded_json::parse_or_discard(parameters_json);
    if (!object.is_object()) return parameters;
    for (const auto& [name, value] : object.items()) parameters[name] = value_of_json(value);
    return parameters;
}

/// @param wanted name with hyphens @returns nullopt if no row has the parameter
std::optional<Setting> parameter_setting(const std::string& wanted, std::span<const Result> results) {
    const auto by_json = std::make_shared<std::map<std::string, Parameters>>();
    std::string name;
    for (const Result& result : results) {
        const auto [place, is_new] = by_json->try_emplace(result.row.parameters_json);
        if (!is_new) continue;
        place->second = parameters_of(result.row.parameters_json);
        for (const auto& [parameter, value] : place->second)
            if (underscores_to_hyphens(parameter) == wanted) name = parameter;
    }
    if (name.empty()) return std::nullopt;
    return Setting{name, name, "", true, true, [by_json, name](const Result& result) -> SettingValue {
                       const Parameters& parameters = by_json->at(result.row.parameters_json);
                       const auto found = parameters.find(name);
                       return found == parameters.end() ? SettingValue{unknown_label, {1, 0}} : found->second;
                   }};
}

}  // namespace

std::string title_of_subset(std::string_view task) { return task == "timing" ? "New tokens" : "Subset"; }

Setting setting_named(std::string_view name, std::span<const Result> results,
                      const std::map<std::string, std::string>& labels) {
    const std::vector<Setting> settings = {
        {"policy", "Policy", "", true, false,
         [labels](const Result& result) {
             const auto renamed = labels.find(result.setting);
             return named_value(renamed == labels.end() ? result.setting : renamed->second);
         }},
        {"budget", "Budget", "", false, true, budget_value},
        {"task", "Task", "", false, false, [](const Result& result) { return named_value(result.task); }},
        {"subset", name == "subset" ? title_of_subset(only_task(results)) : "", "", false, false,
         [](const Result& result) { return named_value(result.row.subset); }},
        {"length", "Length", "tokens", false, false,
         [](const Result& result) {
             const int64_t length = result.row.length;
             return number_value(length > 0 ? static_cast<double>(length) : NAN, fmt::format("{}", length));
         }},
        {"depth", "Depth", "", false, false,
         [](const Result& result) { return number_value(result.row.depth, fmt::format("{:.4g}", result.row.depth)); }},
        {"batch", "Batch", "", false, false,
         [](const Result& result) {
             return number_value(static_cast<double>(result.row.batch), fmt::format("{}", result.row.batch));
         }},
        {"model", "Model", "", false, false, [](const Result& result) { return named_value(result.row.model); }},
        {"dtype", "Number type", "", false, false, [](const Result& result) { return named_value(result.row.dtype); }},
        {"question", "Question", "", false, false, question_value},
        {"trace", "Trace", "", false, false, [](const Result& result) { return named_value(result.trace); }},
    };
    const std::string wanted = underscores_to_hyphens(name);
    const auto found = std::ranges::find(settings, wanted, &Setting::name);
    if (found != settings.end()) return *found;
    if (auto parameter = parameter_setting(wanted, results)) return *std::move(parameter);
    std::vector<std::string> known;
    for (const Setting& setting : settings) known.push_back(setting.name);
    std::set<std::string> parameters;
    for (const Result& result : results)
        for (const auto& [parameter, value] : parameters_of(result.row.parameters_json)) parameters.insert(parameter);
    known.insert(known.end(), parameters.begin(), parameters.end());
    throw FigureError(fmt::format("rows of results have no setting '{}'.{} There are {}", name,
                                  policies::did_you_mean(wanted, known), policies::joined(known)));
}

std::optional<std::set<std::string>> match_name(const RunName& name, const Result& result,
                                                const std::map<std::string, std::string>& labels) {
    static const std::vector<Setting> others = [] {
        std::vector<Setting> settings;
        for (const char* other : {"question", "model", "dtype", "task", "subset", "length", "depth", "batch"})
            settings.push_back(setting_named(other, {}));
        return settings;
    }();
    DescribedRun run{result.row.policy, {result.setting}, result.budget, result.trace};
    if (const auto renamed = labels.find(result.setting); renamed != labels.end())
        run.settings.push_back(renamed->second);
    if (name.has_others())
        for (const Setting& other : others) run.others.emplace_back(other.name, other.value(result).label);
    return name.match(run);
}

std::string setting_without(const Result& result, const std::string& parameter) {
    try {
        policies::PolicySpec spec = policies::policy_from_record(result.row.policy, result.row.parameters_json);
        const auto& declared = spec.definition->parameters;
        const auto found = std::ranges::find(declared, parameter, &policies::Parameter::name);
        if (found != declared.end()) spec.values.set_value(parameter, found->fallback);
        return spec.label();
    } catch (const policies::ParameterError&) {
        return result.row.policy;
    }
}

}  // namespace kvscope::analysis
