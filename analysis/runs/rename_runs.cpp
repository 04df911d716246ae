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

/// A group of results of a task or of prompts.
struct NamedGroup {
    std::string setting;
    std::string label;  ///< "snapkv:window=8 @ 64"
    DescribedRun run;
};

std::vector<NamedGroup> groups_in(const std::vector<trace::Reader>& readers) {
    std::vector<NamedGroup> groups;
    const auto add = [&](const trace::Reader& reader, std::span<const trace::ResultRow> rows) {
        if (rows.empty()) return;
        for (const TaskGroup& group : group_results_by_setting_and_budget(rows)) {
            groups.push_back({group.setting, group.setting + " @ " + group.budget, described_group(group)});
            groups.back().run.trace = reader.path().stem().string();
        }
    };
    for (const trace::Reader& reader : readers) {
        add(reader, rows_of_prompts(reader));
        for (const std::string& task : reader.result_tasks()) add(reader, reader.results(task));
    }
    return groups;
}

/// Returns all runs of results and prompts.
std::vector<DescribedRun> described_runs_in(const std::vector<trace::Reader>& readers) {
    std::vector<DescribedRun> runs;
    for (NamedGroup& group : groups_in(readers)) runs.push_back(std::move(group.run));
    for (const trace::Reader& reader : readers)
        for (int prompt = 0; prompt < reader.n_prompts(); ++prompt)
            for (int run = 0; run < reader.n_runs(prompt); ++run) runs.push_back(described_run(reader, prompt, run));
    return runs;
}

std::vector<std::string> labels_in(const std::vector<trace::Reader>& readers) {
    std::vector<std::string> labels;
    for (const NamedGroup& group : groups_in(readers)) labels.push_back(group.label);
    for (const trace::Reader& reader : readers)
        for (int prompt = 0; prompt < reader.n_prompts(); ++prompt)
            for (const trace::RunAttributes& run : reader.runs(prompt)) {
                const std::string label = recorded_or_default_label(run);
                if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
            }
    return labels;
}

/// The new label of a run, and what the rename matched: the policy, the policy with parameters, a label of a table of
/// results ("snapkv, question seen"), or the label.
struct Renamed {
    enum class By { policy, setting, label_of_results, label };
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

/// Returns nullopt if the text of the rename is not a label of the run in tables of results.
std::optional<Renamed> renamed_by(const Rename& rename, const std::string& label, const DescribedRun& run) {
    if (auto renamed = renamed_by(rename, label)) return renamed;
    const auto named = RunName(rename.from).match(run);
    if (!named) return std::nullopt;
    const std::string_view setting = policies::label_without_budget(label);
    if (named->contains("budget") || setting.empty()) return Renamed{Renamed::By::label_of_results, rename.to};
    return Renamed{Renamed::By::label_of_results, rename.to + label.substr(setting.size())};
}

Rename parsed(const std::string& text, const std::vector<std::string>& labels, const std::vector<DescribedRun>& runs) {
    for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
        const std::string from = text.substr(0, at);
        const auto is_called = [&](const std::string& label) { return renamed_by({from, ""}, label).has_value(); };
        const RunName name(from);
        const auto has_name = [&](const DescribedRun& run) { return name.match(run).has_value(); };
        if (std::ranges::none_of(labels, is_called) && std::ranges::none_of(runs, has_name)) continue;
        if (at + 1 == text.size())
            throw FigureError(
                fmt::format("--rename '{}' has no new label after the =; the form is LABEL=NEW LABEL", text));
        return {from, text.substr(at + 1)};
    }
    if (labels.empty()) throw FigureError(fmt::format("--rename '{}': there are no runs to rename", text));
    throw FigureError(fmt::format(
        "--rename '{}' does not begin with a run's label; the form is LABEL=NEW LABEL, and the labels are {}", text,
        fmt::join(labels, ", ")));
}

std::map<std::pair<int, int>, std::string> labels_of(const trace::Reader& reader, const std::vector<Rename>& renames) {
    std::map<std::pair<int, int>, std::string> given;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        std::map<std::string, std::vector<int>> called;  // runs by label
        for (int run = 0; run < reader.n_runs(prompt); ++run) {
            std::string label = recorded_or_default_label(reader.run(prompt, run));
            const DescribedRun described = described_run(reader, prompt, run);
            std::optional<Renamed> best;  // the last of the best matches
            for (const Rename& rename : renames) {
                const auto one = renamed_by(rename, label, described);
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
    const std::vector<DescribedRun> runs = described_runs_in(readers);
    for (const std::string& text : renames) all.push_back(parsed(text, labels, runs));
    std::vector<trace::Reader> with_labels;
    for (const trace::Reader& reader : readers) with_labels.push_back(reader.with_labels(labels_of(reader, all)));
    return with_labels;
}

std::map<std::string, std::string> new_labels_of_settings(const std::vector<trace::Reader>& readers,
                                                          const std::vector<std::string>& renames) {
    const std::vector<std::string> labels = labels_in(readers);
    const std::vector<DescribedRun> runs = described_runs_in(readers);
    const std::vector<NamedGroup> groups = groups_in(readers);
    std::map<std::string, std::string> given;
    std::map<std::string, Renamed::By> fits;  // kind of match that gave each label
    for (const std::string& text : renames) {
        Rename rename = parsed(text, labels, runs);
        for (const NamedGroup& group : groups) {
            const auto renamed = renamed_by(rename, group.label, group.run);
            if (!renamed || renamed->by == Renamed::By::label) continue;
            if (renamed->by == Renamed::By::label_of_results) {
                const std::string trace = group.run.trace + ": ";
                // Results of a single trace have no name of the trace.
                const bool has_trace = readers.size() == 1 && rename.from.starts_with(trace);
                given[has_trace ? rename.from.substr(trace.size()) : rename.from] = rename.to;
                continue;
            }
            const auto [known, is_new] = fits.try_emplace(group.setting, renamed->by);
            if (!is_new && renamed->by < known->second) continue;
            known->second = renamed->by;
            const std::string_view rest = std::string_view(group.label).substr(group.setting.size());  // " @ 64"
            given[group.setting] = renamed->label.substr(0, renamed->label.size() - rest.size());
        }
    }
    return given;
}

}  // namespace kvscope::analysis
