#include "analysis/runs/run_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/drawing/short_label.h"
#include "analysis/runs/model_in_words.h"
#include "analysis/runs/run_name.h"
#include "analysis/runs/run_style.h"
#include "common/hidden_question.h"
#include "policies/registry/name_matching.h"
#include "policies/registry/registry.h"

namespace kvscope::analysis {
namespace {

std::string known_runs(const std::vector<trace::RunAttributes>& runs) {
    std::vector<std::string> names;
    for (size_t j = 0; j < runs.size(); ++j) {
        names.push_back(fmt::format("{} ({})", j, recorded_or_default_label(runs[j])));
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string run_meant(const std::vector<trace::RunAttributes>& runs, const std::string& name) {
    std::vector<std::string> of_policies, labels;
    for (const trace::RunAttributes& run : runs) {
        if (std::find(of_policies.begin(), of_policies.end(), run.policy) == of_policies.end())
            of_policies.push_back(run.policy);
        for (const std::string& label : {recorded_or_default_label(run), run.given_label})
            if (!label.empty()) labels.push_back(label);
    }
    const std::string policy = policies::did_you_mean(name, of_policies);
    return policy.empty() ? policies::did_you_mean(name, labels) : policy;
}

bool finished(const trace::RunAttributes& run) { return run.status == trace::schema::run::status_complete; }

std::optional<size_t> as_number(const std::string& text) {
    size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Converts a policy with parameters to the form used in labels: "aperturekv:qd=false" to "aperturekv:qd=off".
std::string setting_called(const std::string& name) {
    try {
        return policies::parse_policy(name).label();
    } catch (const policies::ParameterError&) {
        return name;  // a label of another program
    }
}

/// Finds runs by a label of tables of results, such as "snapkv @ 64, question seen" or "demo: snapkv @ 64".
std::vector<size_t> runs_with_label_of_results(const trace::Reader& reader, int prompt, const std::string& text) {
    const std::vector<trace::RunAttributes>& runs = reader.runs(prompt);
    const RunName name(text);
    std::vector<std::pair<std::string, std::string>> others = {
        {"question",
         std::string((reader.prompt(prompt).query_aware ? seen_question_suffix : hidden_question_suffix).substr(2))}};
    if (reader.has_model()) {
        others.emplace_back("model", reader.model().name);
        others.emplace_back("dtype", reader.model().dtype);
    }
    std::vector<size_t> found;
    for (size_t j = 0; j < runs.size(); ++j) {
        DescribedRun run{runs[j].policy, {}, "all", "", others};
        for (const std::string& label : {recorded_or_default_label(runs[j]), runs[j].given_label}) {
            const std::string setting(policies::label_without_budget(label));
            if (!label.empty()) run.settings.push_back(setting.empty() ? label : setting);
            if (!setting.empty() && run.budget == "all")
                run.budget = label.substr(setting.size() + std::string_view(" @ ").size());
        }
        const std::filesystem::path& path = reader.path();
        for (const std::string& trace : {path.stem().string(), path.string()}) {
            run.trace = trace;
            if (!name.match(run)) continue;
            found.push_back(j);
            break;
        }
    }
    return found;
}

/// Finds runs by recorded label, user label, policy, policy with parameters, number, or label of results. The number
/// follows the labels of runs, because a label may be a number.
std::vector<size_t> runs_called(const trace::Reader& reader, int prompt, const std::string& name) {
    const std::string trace = reader.path().string();
    const std::vector<trace::RunAttributes>& runs = reader.runs(prompt);
    std::vector<size_t> found;
    for (size_t j = 0; j < runs.size(); ++j) {
        if (policies::same_run_label(recorded_or_default_label(runs[j]), name)) found.push_back(j);
    }
    if (!found.empty()) return found;
    for (size_t j = 0; j < runs.size(); ++j) {
        if (runs[j].given_label == name && !name.empty()) found.push_back(j);
    }
    if (!found.empty()) return found;
    for (size_t j = 0; j < runs.size(); ++j) {
        if (runs[j].policy == name) found.push_back(j);
    }
    if (!found.empty()) return found;
    const std::string setting = setting_called(name);
    for (size_t j = 0; j < runs.size(); ++j) {
        if (policies::label_without_budget(recorded_or_default_label(runs[j])) == setting) found.push_back(j);
    }
    if (!found.empty()) return found;
    if (const auto number = as_number(name); number && *number < runs.size()) return {*number};
    found = runs_with_label_of_results(reader, prompt, name);
    if (!found.empty()) return found;
    const std::string meant = run_meant(runs, name);
    throw FigureError(fmt::format("{}: there is no run '{}' in this prompt{} {}", trace, name,
                                  meant.empty() ? "; there are" : "." + meant + " There are", known_runs(runs)));
}

std::vector<size_t> runs_of(const trace::Reader& reader, int prompt, const RunChoice& choice) {
    if (const auto* name = std::get_if<std::string>(&choice)) return runs_called(reader, prompt, *name);
    const std::vector<trace::RunAttributes>& runs = reader.runs(prompt);
    const int place = std::get<int>(choice);
    if (place >= 0 && static_cast<size_t>(place) < runs.size()) return {static_cast<size_t>(place)};
    throw FigureError(fmt::format("{}: there is no run {} in this prompt; there are {}", reader.path().string(), place,
                                  known_runs(runs)));
}

std::set<int> checked(const trace::Reader& reader, const std::vector<int>& numbers, int n, const char* what) {
    for (const int number : numbers) {
        if (number < 0 || number >= n) {
            throw FigureError(
                fmt::format("{}: there is no {} {}; there are 0 to {}", reader.path().string(), what, number, n - 1));
        }
    }
    return {numbers.begin(), numbers.end()};
}

std::string budget_in_words(const trace::RunAttributes& run) {
    const double kept = 100 * run.budget_fraction;
    if (has_budget_of_bytes(run)) return fmt::format("budget {:.4g} % of the full cache's bytes", kept);
    return fmt::format("budget {} ({:.4g} % kept, {:.4g} % removed)", run.budget, kept, 100 - kept);
}

}  // namespace

void check_prompt(const trace::Reader& reader, int prompt) {
    if (reader.n_prompts() == 0) {
        const std::string path = reader.path().string();
        const auto tasks = reader.result_tasks();
        if (!tasks.empty())
            throw NothingToShow(
                fmt::format("{}: the trace has scores of {} but no prompts; --figure task-scores draws the scores",
                            path, fmt::join(tasks, ", ")));
        if (reader.has_results(trace::schema::root::prompt_results))
            throw NothingToShow(fmt::format(
                "{}: the trace contains only rows of results: --figure results-table draws their means; a trace made "
                "with --record full contains the prompts, too",
                path));
        throw NothingToShow(fmt::format("{}: the trace has no prompts{}", path, reader.complete() ? "" : " yet"));
    }
    if (prompt < 0 || prompt >= reader.n_prompts()) {
        throw FigureError(fmt::format("{}: there is no prompt {}; there are 0 to {}", reader.path().string(), prompt,
                                      reader.n_prompts() - 1));
    }
}

std::vector<int> chosen_runs(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    const std::vector<trace::RunAttributes>& runs = reader.runs(options.prompt);
    std::set<int> chosen;
    for (const RunChoice& choice : options.runs) {
        const std::vector<size_t> called = runs_of(reader, options.prompt, choice);
        size_t n_finished = 0;
        for (const size_t j : called) {
            if (!finished(runs[j])) continue;
            chosen.insert(static_cast<int>(j));
            ++n_finished;
        }
        if (n_finished == 0) {
            const auto* name = std::get_if<std::string>(&choice);
            throw FigureError(fmt::format("run '{}' failed and kept nothing to show: {}",
                                          name ? *name : run_label(runs[called[0]]), runs[called[0]].message));
        }
    }
    if (options.runs.empty()) {
        for (size_t j = 0; j < runs.size(); ++j) {
            if (finished(runs[j]) && !runs[j].is_full()) chosen.insert(static_cast<int>(j));
        }
        const auto full = reader.full_run(options.prompt);
        if (chosen.empty() && full && finished(runs[static_cast<size_t>(*full)])) chosen.insert(*full);
    }
    if (chosen.empty()) {
        throw NothingToShow(
            fmt::format("{}: no run of prompt {} has finished", reader.path().string(), options.prompt));
    }
    return {chosen.begin(), chosen.end()};
}

std::vector<int> compared_runs(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    std::vector<int> runs;
    if (options.runs.empty()) {
        runs = chosen_runs(reader, options);
        if (runs.size() < 2) {
            throw NothingToShow(fmt::format("{}: a difference needs two finished runs, but prompt {} has {}",
                                            reader.path().string(), options.prompt, runs.size()));
        }
        runs.resize(2);
    } else {
        for (const RunChoice& choice : options.runs) {
            FigureOptions one = options;
            one.runs = {choice};
            for (const int run : chosen_runs(reader, one)) runs.push_back(run);
        }
        if (runs.size() != 2) {
            throw FigureError(
                fmt::format("a difference needs two runs, A and B, but {} were chosen; choose two by label or number",
                            runs.size()));
        }
    }
    return runs;
}

bool compares_two_runs(const FigureDefinition& definition) { return definition.shown_runs == &compared_runs; }

std::vector<int> chosen_layers(const trace::Reader& reader, const FigureOptions& options) {
    const int n_layers = static_cast<int>(reader.model().n_layers);
    std::set<int> chosen = checked(reader, options.layers, n_layers, "layer");
    if (chosen.empty()) {
        for (int layer = 0; layer < n_layers; ++layer) chosen.insert(layer);
    }
    return {chosen.begin(), chosen.end()};
}

void check_runs_and_layers(const trace::Reader& reader, const FigureOptions& options) {
    chosen_runs(reader, options);
    chosen_layers(reader, options);
}

std::vector<int> chosen_heads(const trace::Reader& reader, const FigureOptions& options) {
    const std::set<int> chosen = checked(reader, options.heads, static_cast<int>(reader.model().n_heads), "query head");
    return {chosen.begin(), chosen.end()};
}

std::vector<int> evenly_spaced(int n, int k) {
    std::vector<int> numbers;
    if (k >= n) k = n;
    for (int i = 0; i < k; ++i) numbers.push_back(k == 1 ? 0 : (i * (n - 1) + (k - 1) / 2) / (k - 1));
    return numbers;
}

bool is_narrow_figure(const FigureOptions& options) { return options.width_mm > 0 && options.width_mm < 120; }

std::vector<std::pair<std::string, std::string>> figure_recipe(const trace::Reader& reader, int prompt,
                                                               const std::vector<int>& runs) {
    std::vector<std::pair<std::string, std::string>> recipe;
    recipe.emplace_back("Software", reader.generator());
    if (reader.has_model()) recipe.emplace_back("Model", model_in_words(reader.model()));
    if (reader.n_prompts() > 0) {
        const trace::PromptAttributes& attributes = reader.prompt(prompt);
        recipe.emplace_back(
            "Prompt",
            fmt::format("{}{} ({}): {} tokens, {} of which are context; the policies {} the question{}", prompt,
                        reader.n_prompts() > 1 ? fmt::format(" of 0 to {}", reader.n_prompts() - 1) : "",
                        attributes.name, attributes.n_tokens, attributes.n_context,
                        attributes.query_aware ? "see" : "do not see",
                        attributes.truncated ? "; the prompt was cut" : ""));
    }
    for (const int j : runs) {
        const trace::RunAttributes& run = reader.run(prompt, j);
        recipe.emplace_back(fmt::format("Run {}", j),
                            fmt::format("{}{}: {} {}, {}, window {}, seed {}", recorded_or_default_label(run),
                                        run.given_label.empty() ? "" : fmt::format(" (called {})", run.given_label),
                                        run.policy, run.parameters_json, budget_in_words(run), run.window, run.seed));
    }
    recipe.emplace_back("Trace", reader.path().filename().string());
    return recipe;
}

void complete_figure(Figure& figure, const trace::Reader& reader, const FigureOptions& options,
                     const std::vector<int>& runs) {
    figure.recipe = figure_recipe(reader, options.prompt, runs);
    figure.created_utc = reader.created_utc();
    for (Panel& panel : figure.panels) {
        if (panel.subject.run < 0) continue;
        const trace::RunAttributes& run = reader.run(options.prompt, panel.subject.run);
        if (!run.given_label.empty()) panel.whole_title = recorded_or_default_label(run);
    }
    shorten_labels(figure);
    figure.show_title = options.title;
    if (options.width_mm < 0 || options.height_mm < 0) {
        throw FigureError(fmt::format("a figure cannot be {} mm x {} mm: both sizes must be positive", options.width_mm,
                                      options.height_mm));
    }
    if (options.width_mm > 0) figure.width_mm = options.width_mm;
    if (options.height_mm > 0) figure.height_mm = options.height_mm;
}

}  // namespace kvscope::analysis
