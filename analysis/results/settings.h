#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/results/result.h"
#include "analysis/runs/run_name.h"

namespace kvscope::analysis {

/// SettingValue::label of an unknown value.
inline constexpr const char* unknown_label = "–";

/// One value of a setting.
struct SettingValue {
    std::string label;
    std::pair<int, double> place;  ///< order of the values; equal places keep the order of the rows
    double number = NAN;           ///< NaN if the value is not a number
};

/// A property of rows by which they are grouped.
struct Setting {
    std::string name;  ///< for options and CSV
    std::string title;
    std::string unit;
    /// Whether the policy setting determines the value: the policy itself and its parameters.
    bool of_policy = false;
    /// Whether the full run belongs to all values, because it has no budget and no parameters.
    bool full_has_all = false;
    std::function<SettingValue(const Result&)> value;
};

/// Returns policy, budget, task, subset, length, depth, model, dtype, question or trace, or a parameter of a policy.
/// @param labels new labels of policy settings (FigureOptions::setting_labels)
/// @throws FigureError with the known names if there is no such setting, and no row has such a parameter
[[nodiscard]] Setting setting_named(std::string_view name, std::span<const Result> results,
                                    const std::map<std::string, std::string>& labels = {});

/// Returns the heading of the setting `subset` in tables of the task.
[[nodiscard]] std::string title_of_subset(std::string_view task);

/// Returns what RunName::match() returns. @param labels new labels of policy settings (FigureOptions::setting_labels)
[[nodiscard]] std::optional<std::set<std::string>> match_name(const RunName& name, const Result& result,
                                                              const std::map<std::string, std::string>& labels);

/// Returns the policy setting without one parameter: "snapkv" for "snapkv:window=8" and "window".
[[nodiscard]] std::string setting_without(const Result& result, const std::string& parameter);

}  // namespace kvscope::analysis
