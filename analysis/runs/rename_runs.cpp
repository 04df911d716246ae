#include "analysis/runs/rename_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/run_name.h"
#include "analysis/runs/run_style.h"
#include "analysis/runs/task_scores.h"
#include "policies/registry/name_matching.h"
#include "policies/registry/registry.h"

namespace kvscope::analysis {
namespace {

struct Rename {
    std::string from, to;
};

/// Returns the rows of results of prompts; none for traces of versions that did not write them.
std::span<const trace::ResultRow> rows_of_prompts(const trace::Reader& reader) {
    if (!reader.has_results(trace::schema::root::prompt_results)) return {};
    return reader.results(trace::schema::root::prompt_results);
}

/// Returns the setting and the label, "snapkv:window=8 @ 64", of each group of results of tasks or prompts.
std::vector<std::pair<std::string, std::string>> settings_in(const std::vector<trace::Reader>& readers) {
    std::vector<std::pair<std::string, std::string>> settings;
    const auto add = [&](std::span<const trace::ResultRow> rows) {
        if (rows.empty()) return;
        for (const TaskGroup& group : group_results_by_setting_and_budget(rows))
            settings.emplace_back(group.setting, group.setting + " @ " + group.budget);
    };
    for (const trace::Reader& reader : readers) {
        add(rows_of_prompts(reader));
        for (const std::string& task : reader.result_tasks()) add(reader.results(task));
    }
    return settings;
}

std::vector<std::string> labels_in(const std::vector<trace::Reader>& readers) {
    std::vector<std::string> labels;
    for (const auto& [setting, label] : settings_in(readers)) labels.push_back(label);
    for (const trace::Reader& reader : readers)
        for (int prompt = 0; prompt < reader.n_prompts(); ++prompt)
            for (const trace::RunAttributes& run : reader.runs(prompt)) {
                const std::string label = recorded_or_default_label(run);
                if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
            }
    return labels;
}

/// The new label of a run, and what the rename matched: the label, the policy with parameters, or the policy.
struct Renamed {
    enum class By { policy, setting, label };
    By by;
    std::string label;
};

std::string setting_of(const std::string& text) {
    try {
        return policies::parse_policy(text).label();
    } catch (const policies::ParameterError&) {
        return text;  // a label of another program
    }
}

/// Returns nullopt if the rename does not match the label. Only the matched part of the label is replaced.
std::optional<Renamed> renamed_by(const Rename& rename, const std::string& label) {
    if (policies::same_run_label(label, rename.from)) return Renamed{Renamed::By::label, rename.to};
    const std::string_view setting = policies::label_without_budget(label);
    if (setting.empty()) return std::nullopt;
    const std::string_view policy = setting.substr(0, setting.find(':'));
    if (policy == rename.from && policy != setting)
        return Renamed{Renamed::By::policy, rename.to + label.substr(policy.size())};
    if (setting != setting_of(rename.from)) return std::nullopt;
    return Renamed{Renamed::By::setting, rename.to + label.substr(setting.size())};
}

Rename parsed(const std::string& text, const std::vector<std::string>& labels) {
    // The longest LABEL: "aperturekv:qd=off=OFF" does not rename aperturekv:qd, which is aperturekv:qd=on.
    for (size_t at = text.rfind('='); at != std::string::npos && at > 0; at = text.rfind('=', at - 1)) {
        const std::string from = text.substr(0, at);
        const auto is_called = [&](const std::string& label) { return renamed_by({from, ""}, label).has_value(); };
        if (std::none_of(labels.begin(), labels.end(), is_called)) continue;
        if (at + 1 == text.size())
            throw FigureError(
                fmt::format("--rename '{}' has no new label after the =; the form is LABEL=NEW LABEL", text));
        return {from, text.substr(at + 1)};
    }
    std::vector<std::string> shown;
    for (const std::string& label : labels)
        shown.push_back(label.ends_with(" @ all") ? std::string(policies::label_without_budget(label)) : label);
    if (labels.empty()) throw FigureError(fmt::format("--rename '{}': there are no runs to rename", text));
    throw FigureError(
        fmt::format("--rename '{}' does not begin with a run's label or policy.{} The form is LABEL=NEW LABEL, and the "
                    "labels are {}",
                    text, policies::did_you_mean(text.substr(0, text.find('=')), labels_and_policies(shown)),
                    fmt::join(shown, ", ")));
}

std::map<std::pair<int, int>, std::string> labels_of(const trace::Reader& reader, const std::vector<Rename>& renames) {
    std::map<std::pair<int, int>, std::string> given;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        std::map<std::string, std::vector<int>> called;  // runs by label
        for (int run = 0; run < reader.n_runs(prompt); ++run) {
            std::string label = recorded_or_default_label(reader.run(prompt, run));
            std::optional<Renamed> best;  // the last of the best matches
            for (const Rename& rename : renames) {
                const auto one = renamed_by(rename, label);
                if (one && (!best || one->by >= best->by)) best = one;
            }
            if (best) given[{prompt, run}] = label = best->label;
            called[label].push_back(run);
        }
        for (const auto& [label, runs] : called) {
            const auto is_renamed = [&, p = prompt](int run) { return given.contains({p, run}); };
            if (runs.size() > 1 && std::any_of(runs.begin(), runs.end(), is_renamed))
                throw FigureError(fmt::format("--rename: two runs of prompt {} would be called '{}'", prompt, label));
        }
    }
    return given;
}

}  // namespace

std::vector<trace::Reader> rename_runs(const std::vector<trace::Reader>& readers,
                                       const std::vector<std::string>& renames) {
    const std::vector<std::string> labels = labels_in(readers);
    std::vector<Rename> all;
    for (const std::string& text : renames) all.push_back(parsed(text, labels));
    std::vector<trace::Reader> with_labels;
    for (const trace::Reader& reader : readers) with_labels.push_back(reader.with_labels(labels_of(reader, all)));
    return with_labels;
}

std::map<std::string, std::string> new_labels_of_settings(const std::vector<trace::Reader>& readers,
                                                          const std::vector<std::string>& renames) {
    const std::vector<std::string> labels = labels_in(readers);
    std::map<std::string, std::string> given;
    std::map<std::string, Renamed::By> fits;  // kind of match that gave each label
    const auto settings = settings_in(readers);
    for (const std::string& text : renames) {
        const Rename rename = parsed(text, labels);
        for (const auto& [setting, label] : settings) {
            const auto renamed = renamed_by(rename, label);
            if (!renamed || renamed->by == Renamed::By::label) continue;
            const auto [known, is_new] = fits.try_emplace(setting, renamed->by);
            if (!is_new && renamed->by < known->second) continue;
            known->second = renamed->by;
            const std::string_view rest = std::string_view(label).substr(setting.size());  // the budget: " @ 64"
            given[setting] = renamed->label.substr(0, renamed->label.size() - rest.size());
        }
    }
    std::map<std::string, std::string> called;  // settings by label
    for (const auto& [setting, label] : settings) {
        const auto renamed = given.find(setting);
        const auto [other, is_new] = called.try_emplace(renamed == given.end() ? setting : renamed->second, setting);
        if (!is_new && other->second != setting)
            throw FigureError(fmt::format("--rename: the settings '{}' and '{}' would both be called '{}'",
                                          other->second, setting, other->first));
    }
    return given;
}

}  // namespace kvscope::analysis
