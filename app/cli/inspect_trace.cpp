#include "app/cli/inspect_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <vector>

#include "analysis/results/summary_table.h"
#include "analysis/runs/cost_table.h"
#include "analysis/runs/extrapolated_memory.h"
#include "analysis/runs/run_style.h"
#include "analysis/runs/task_scores.h"
#include "analysis/tables/table_format.h"
#include "common/bounded_json.h"
#include "common/json.h"
#include "engine/options/run_options.h"
#include "policies/registry/registry.h"
#include "trace/checks/check_trace.h"
#include "trace/part_folder.h"
#include "trace/shard.h"
#include "trace/tree.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

using Problems = std::vector<trace::Problem>;

constexpr size_t longest_question = 200;  // bytes

/// Returns a text on one line, cut at a character boundary after about `most` bytes.
std::string first_line(const std::string& text, size_t most) {
    if (text.size() <= most) return one_line(text);
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
    return one_line(text.substr(0, most)) + " …";
}

/// Returns the result of `action`. If `action` fails, adds a problem and returns nullopt.
template <class Action>
auto readable(Problems& problems, const std::string& path, const std::string& what, Action action)
    -> std::optional<decltype(action())> {
    try {
        return action();
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        problems.push_back({trace::Problem::Severity::error, path, what, error.what()});
        return std::nullopt;
    }
}

/// Returns the recorded settings: "temperature 0.7, top-p 0.9, seed 3 of the answers, seed 0 of the policies".
std::string sampling_of(const std::string& recipe_json) {
    const auto recipe = bounded_json::parse_or_discard(recipe_json);
    if (!recipe.is_object()) return {};
    using engine::RunOptions;
    struct Shown {
        engine::RunOption::Member option;
        const char *before, *behind;
    };
    const engine::RunOption::Member temperature = &RunOptions::temperature;
    std::string text;
    for (const auto& [option, before, behind] : {Shown{temperature, "temperature ", ""},
                                                 {&RunOptions::top_p, "top-p ", ""},
                                                 {&RunOptions::sampling_seed, "seed ", " of the answers"},
                                                 {&RunOptions::seed, "seed ", " of the policies"}}) {
        const auto found = recipe.find(engine::run_option(option).key);
        if (found == recipe.end() || !found->is_number()) continue;
        const bool is_greedy = option == temperature && *found == 0;
        text += fmt::format("{}{}{}{}{}", text.empty() ? "" : ", ", before, found->dump(), behind,
                            is_greedy ? " (greedy)" : "");
    }
    return text;
}

std::string describe_prompt(const trace::Reader& reader, int index, bool whole_text) {
    const auto& prompt = reader.prompt(index);
    std::string text = fmt::format("\nprompt {} '{}': {} tokens", index, one_line(prompt.name), prompt.n_tokens);
    if (!prompt.question.empty())
        text += fmt::format(", {} of them before the question; question {}", prompt.n_context,
                            prompt.query_aware ? "seen" : "hidden");
    text += fmt::format("\n  template {}, end-of-text ids", prompt.chat_template.empty() ? "none" : "applied");
    for (const int32_t id : prompt.eos_ids) text += fmt::format(" {}", id);
    text += fmt::format(", {}\n", prompt.truncated ? "cut" : "not truncated");
    if (!prompt.question.empty())
        text += fmt::format("  question: {}\n", first_line(prompt.question, longest_question));
    if (whole_text) {
        text += "  exact text sent to the model:\n" + prompt.text + "\n";
        if (!prompt.chat_template.empty()) text += "  template:\n" + prompt.chat_template + "\n";
    } else {
        text += fmt::format("  text (in full with --prompt-text): {}\n", first_line(prompt.text, 120));
    }
    return text;
}

std::string group_of_prompt(const trace::Reader& reader, int index) {
    return fmt::format("/prompts/{}", reader.prompt_number(index));
}

/// Returns when the cache changed its form, e.g. "…: its cache became full after step 9 and compressed after step 40
/// of the answer". Returns "" if the form never changed.
std::string describe_switches(const trace::Reader& reader, int prompt, int run) {
    using namespace trace::schema::run;
    const auto place = trace::Place::of_run(prompt, run);
    if (!reader.has(place, switch_steps) || !reader.has(place, switch_is_full)) return {};
    const auto steps = reader.read<uint32_t>(place, switch_steps);
    const auto is_full = reader.read<uint8_t>(place, switch_is_full);
    std::string text;
    for (size_t i = 0; i < std::min(steps.size(), is_full.size()); ++i)
        text += fmt::format("{}{} after step {}",
                            i == 0                  ? ""
                            : i + 1 == steps.size() ? " and "
                                                    : ", ",
                            is_full[i] ? "full" : "compressed", steps[i]);
    if (text.empty()) return {};
    return fmt::format("\n{}: its cache became {} of the answer\n", one_line(reader.run(prompt, run).label), text);
}

/// Lists the runs whose budget exceeds the prompt. Their policies drop nothing.
std::string describe_large_budgets(const trace::Reader& reader, int prompt) {
    std::vector<std::string> labels;
    for (const auto& run : reader.runs(prompt))
        if (!run.is_full() && !run.budget_of && run.budget > reader.prompt(prompt).visible_tokens())
            labels.push_back(one_line(run.label));
    if (labels.empty()) return {};
    return fmt::format("\nbudgets that keep all {} tokens of the prompt: {}\n", reader.prompt(prompt).visible_tokens(),
                       fmt::join(labels, ", "));
}

analysis::Table run_table(const trace::Reader& reader, int prompt, const MemoryColumns& memory) {
    analysis::Table table = analysis::cost_table(reader, prompt);
    if (memory.n_tokens <= 0) return table;
    const auto budgets = memory.budgets_grow ? analysis::BudgetsAt::shares : analysis::BudgetsAt::entries;
    analysis::add_memory_columns(table, reader.runs(prompt), reader.prompt(prompt).visible_tokens(),
                                 {memory.n_tokens, analysis::cache_shape(reader.model(), memory.model), budgets,
                                  analysis::cache_shape(reader.model())});
    return table;
}

/// Returns "window of 8 queries: aperturekv; of 32 queries: h2o, snapkv", or an empty text if no run has a window.
std::string windows_of_runs(const trace::Reader& reader, int prompt) {
    analysis::WindowsOfPolicies windows;
    for (const auto& run : reader.runs(prompt)) {
        if (run.window <= 0) continue;
        const std::string label = analysis::recorded_or_default_label(run);
        const auto setting = policies::label_without_budget(label);
        windows[one_line(run.policy)][run.window].insert(one_line(setting.empty() ? label : std::string(setting)));
    }
    return analysis::windows_in_words(windows);
}

std::string describe_runs(const trace::Reader& reader, int prompt, const MemoryColumns& memory, Problems& problems) {
    std::string text;
    if (reader.n_runs(prompt) > 0) {
        const auto table = readable(problems, group_of_prompt(reader, prompt), "runs that can be put into a table",
                                    [&] { return run_table(reader, prompt, memory); });
        if (table) text += "\n" + analysis::format_table(*table, analysis::TableFormat::text, terminal_width());
    }
    if (const auto windows = windows_of_runs(reader, prompt); !windows.empty()) text += "\n" + windows + "\n";
    text += describe_large_budgets(reader, prompt);
    for (int i = 0; i < reader.n_runs(prompt); ++i) {
        const auto& run = reader.run(prompt, i);
        if (run.status != "complete")
            text += fmt::format("\n{} failed: {}\n", one_line(run.label), one_line(run.message));
        else
            text +=
                fmt::format("\n{}{}\n", one_line(run.label),
                            run.output_text.empty() ? " answered nothing" : ": " + first_line(run.output_text, 400));
        text += readable(problems, group_of_prompt(reader, prompt), "switches that can be read", [&] {
                    return describe_switches(reader, prompt, i);
                }).value_or("");
    }
    return text;
}

analysis::Table costs_of_task(std::span<const trace::ResultRow> rows, const std::string& task) {
    std::vector<analysis::Result> results;
    analysis::add_table(results, rows, task);
    return analysis::overview_of_costs(results);
}

std::string describe_scores(const trace::Reader& reader, const std::string& task) {
    const auto rows = reader.results(task);
    if (rows.empty()) return {};
    if (!analysis::has_scores(rows))
        return fmt::format(
            "\n{}\n{}", task,
            analysis::format_table(costs_of_task(rows, task), analysis::TableFormat::text, terminal_width()));
    const auto groups = analysis::group_results_by_setting_and_budget(rows);
    std::string text = fmt::format(
        "\n{}\n{}", caption_of_scores(task),
        analysis::format_table(analysis::task_scores_by_budget(groups), analysis::TableFormat::text, terminal_width()));
    if (const auto what = describe_what_policies_saw(rows); !what.empty()) text += what + "\n";
    for (const auto& failure : analysis::describe_failed_runs(groups)) text += one_line(failure) + "\n";
    if (const auto untouched = analysis::describe_uncompressed_samples(groups); !untouched.empty())
        text += untouched + "\n";
    return text + analysis::assess_task_validity(groups) + "\n";
}

/// Returns a table of means over the prompts; empty if there is only one prompt.
std::string describe_means(const trace::Reader& reader, Problems& problems) {
    if (reader.n_prompts() == 1) return {};
    return readable(problems, "/results/prompts", "runs that can be averaged",
                    [&]() -> std::string {
                        const auto results = analysis::results_of_prompts(reader);
                        std::set<std::string> samples;
                        for (const auto& result : results) samples.insert(result.sample);
                        if (samples.size() < 2) return {};
                        return fmt::format("\nmeans over {} prompts\n{}", samples.size(),
                                           analysis::format_table(analysis::overview_of_results(results),
                                                                  analysis::TableFormat::text, terminal_width()));
                    })
        .value_or("");
}

std::string describe_tasks(const trace::Reader& reader, Problems& problems) {
    std::string text;
    for (const auto& task : reader.result_tasks())
        text += readable(problems, "/results/" + task, "scores that can be put into a table", [&] {
                    return describe_scores(reader, task);
                }).value_or("");
    return text;
}

/// Describes a trace without a model: an unfinished one, or results of other programs.
std::string describe_imported_results(const trace::Reader& reader, Problems& problems) {
    if (reader.result_tasks().empty()) return "no model recorded yet\n";
    std::set<std::string> models, programs;
    for (const auto& task : reader.result_tasks())
        for (const trace::ResultRow& row : readable(problems, "/results/" + task, "results that can be read", [&] {
                                               return reader.results(task);
                                           }).value_or(std::span<const trace::ResultRow>())) {
            models.insert(row.model);
            programs.insert(row.source.empty() ? "kvscope" : row.source.string());
        }
    return fmt::format("imported results of {}, computed by {}\n{}",
                       one_line(fmt::format("{}", fmt::join(models, ", "))),
                       one_line(fmt::format("{}", fmt::join(programs, ", "))), describe_tasks(reader, problems));
}

std::string describe(const trace::Reader& reader, bool whole_text, const MemoryColumns& memory, Problems& problems) {
    std::string text = fmt::format("{}: kvscope trace {}, {}, by {} on {}\n", one_line(reader.path().string()),
                                   one_line(reader.version()), reader.complete() ? "complete" : "incomplete",
                                   one_line(reader.generator()), one_line(reader.created_utc()));
    std::error_code error;
    if (const auto part = trace::part_folder_of(reader.path()); reader.complete() && fs::exists(part, error))
        text += fmt::format("an unfinished extension is in {}: repeat its command to continue it\n",
                            one_line(part.string()));
    if (!reader.has_model()) return text + describe_imported_results(reader, problems);
    const auto& model = reader.model();
    text += fmt::format("{} ({}, {}): {} layers, {} heads, {} KV heads of {}, fingerprint {}\n", one_line(model.name),
                        one_line(model.family), one_line(model.dtype), model.n_layers, model.n_heads, model.n_kv_heads,
                        model.head_dim, one_line(model.fingerprint.substr(0, 16)));
    if (const auto device = engine::recorded_device(bounded_json::parse_or_discard(reader.recipe_json()));
        device != "cpu")
        text += fmt::format("computed on {}, which rounds numbers differently from the CPU\n", device);
    if (const auto shard = trace::shard_of_recipe(bounded_json::parse_or_discard(reader.recipe_json())))
        text += fmt::format("shard {} of {}; kvscope join joins the shards\n", shard->number, shard->of);
    if (const auto sampling = sampling_of(reader.recipe_json()); !sampling.empty()) text += sampling + "\n";
    text += describe_means(reader, problems);
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt)
        text += describe_prompt(reader, prompt, whole_text) + describe_runs(reader, prompt, memory, problems);
    return text + describe_tasks(reader, problems);
}

nlohmann::ordered_json tree_json(const fs::path& path) {
    nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
    for (const auto& node : trace::tree(path)) {
        nlohmann::ordered_json entry{{"path", node.path}, {"kind", node.is_group ? "group" : "data set"}};
        if (!node.is_group) {
            entry["type"] = node.type;
            entry["shape"] = node.shape;
            entry["bytes"] = node.bytes;
            entry["stored_bytes"] = node.stored_bytes;
        }
        if (!node.link_to.empty()) entry["link_to"] = node.link_to;
        for (const auto& attribute : node.attributes)
            entry["attributes"][attribute.name] = {{"type", attribute.type}, {"value", attribute.value}};
        nodes.push_back(std::move(entry));
    }
    return nodes;
}

const char* name_of(trace::Problem::Severity severity) {
    return severity == trace::Problem::Severity::error ? "error" : "warning";
}

analysis::Table problem_table(const Problems& problems) {
    analysis::Table table{
        "problems",
        "Problems",
        {{"severity", "", ""}, {"path", "Path", ""}, {"expected", "Expected", ""}, {"found", "Found", ""}},
        {}};
    for (const auto& problem : problems)
        table.rows.push_back({{std::string(name_of(problem.severity)), problem.path, problem.expected, problem.found}});
    return table;
}

/// Adds columns of parameters and answers. Formats for people show the answers below the table.
void add_answers(const trace::Reader& reader, int prompt, analysis::Table& table) {
    table.columns.push_back({"parameters", "Parameters", ""});
    table.columns.back().is_json = true;
    table.columns.push_back({"answer", "Answer", ""});
    for (size_t run = 0; run < table.rows.size(); ++run) {
        const auto& attributes = reader.run(prompt, static_cast<int>(run));
        table.rows[run].cells.emplace_back(attributes.parameters_json);
        table.rows[run].cells.emplace_back(attributes.output_text);
    }
}

analysis::Table runs_of_all_prompts(const trace::Reader& reader, bool with_answers, const MemoryColumns& memory,
                                    Problems& problems) {
    analysis::Table all;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        auto table = readable(problems, group_of_prompt(reader, prompt), "runs that can be put into a table",
                              [&] { return run_table(reader, prompt, memory); });
        if (!table) continue;
        if (with_answers) add_answers(reader, prompt, *table);
        for (auto& row : table->rows) {
            row.cells.insert(row.cells.begin(), int64_t{reader.prompt_number(prompt)});
            row.group = fmt::format("{}: {}", prompt, row.group);
        }
        if (all.columns.empty()) {
            all = *std::move(table);
            all.columns.insert(all.columns.begin(), {"prompt", "Prompt", "", analysis::ColumnType::integer});
        } else {
            std::move(table->rows.begin(), table->rows.end(), std::back_inserter(all.rows));
        }
    }
    return all;
}

int n_errors(const Problems& problems) {
    return static_cast<int>(std::ranges::count_if(
        problems, [](const trace::Problem& problem) { return problem.severity == trace::Problem::Severity::error; }));
}

std::optional<trace::Reader> open_trace(const fs::path& path, Problems& problems) {
    return readable(problems, "/", "a trace that can be opened", [&] { return trace::Reader(path); });
}

void print_json(const fs::path& path, const MemoryColumns& memory, Problems& problems) {
    nlohmann::ordered_json answer{{"tree", tree_json(path)}, {"runs", nlohmann::ordered_json::array()}};
    if (const auto reader = open_trace(path, problems); reader && reader->has_model()) {
        const auto runs =
            analysis::format_table(runs_of_all_prompts(*reader, true, memory, problems), analysis::TableFormat::json);
        answer["runs"] = nlohmann::ordered_json::parse(runs);
    }
    auto& listed = answer["problems"] = nlohmann::ordered_json::array();
    for (const auto& problem : problems)
        listed.push_back({{"severity", name_of(problem.severity)},
                          {"path", problem.path},
                          {"expected", problem.expected},
                          {"found", problem.found}});
    print_data(answer.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print_text(const fs::path& path, const OutputFormat& format, bool whole_text, const MemoryColumns& memory,
                Problems& problems) {
    if (const auto reader = open_trace(path, problems)) print(describe(*reader, whole_text, memory, problems));
    if (!problems.empty()) {
        print("\n");
        format.print(problem_table(problems));
    }
    const int errors = n_errors(problems);
    print(fmt::format("\n{}\n",
                      errors ? fmt::format("{} error{}: the trace violates the format", errors, errors > 1 ? "s" : "")
                             : "no errors: the trace follows the format"));
}

void print_table(const fs::path& path, const OutputFormat& format, const MemoryColumns& memory, Problems& problems) {
    if (const auto reader = open_trace(path, problems)) {
        const auto tasks = reader->result_tasks();
        if (reader->n_prompts() > 0) {
            format.print(runs_of_all_prompts(*reader, !format.is_for_people(), memory, problems));
        } else if (!tasks.empty()) {
            if (const auto scores =
                    readable(problems, "/results/" + tasks.front(), "results that can be put into a table", [&] {
                        const auto rows = reader->results(tasks.front());
                        return analysis::has_scores(rows)
                                   ? analysis::task_scores(analysis::group_results_by_setting_and_budget(rows))
                                   : costs_of_task(rows, tasks.front());
                    }))
                format.print(*scores);
        } else if (const auto results = readable(problems, "/results/prompts", "runs that can be averaged",
                                                 [&] { return analysis::results_of_prompts(*reader); });
                   results && !results->empty()) {
            format.print(analysis::overview_of_results(*results));  // the trace stores only rows
        }
    }
    if (const int errors = n_errors(problems))
        throw std::runtime_error(fmt::format("{} violates the trace format in {} place{}: `kvscope inspect` lists {}",
                                             path.string(), errors, errors == 1 ? "" : "s",
                                             errors == 1 ? "it" : "them"));
}

}  // namespace

std::string caption_of_scores(std::string_view task) {
    return fmt::format("scores of {} in %, with 95 % intervals; one column per budget", one_line(task));
}

std::string describe_what_policies_saw(std::span<const trace::ResultRow> rows) {
    std::string text = analysis::describe_policy_windows(rows);
    if (rows.empty() || rows.front().question_seen < 0) return text;
    const auto is_known = [&](int64_t seen) {
        return std::ranges::find(rows, seen, &trace::ResultRow::question_seen) != rows.end();
    };
    const char* const question = !is_known(0)   ? "question seen"
                                 : !is_known(1) ? "question hidden"
                                                : "the labels say whether policies saw the question";
    return fmt::format("{}{}{}", question, text.empty() ? "" : "; ", text);
}

std::string tables_of_runs_and_answers(const trace::Reader& reader) {
    constexpr int most_prompts = 4;  // more would scroll out of the terminal
    Problems problems;
    const int n_prompts = reader.n_prompts();
    std::string text = describe_means(reader, problems);
    for (int prompt = 0; prompt < n_prompts && n_prompts <= most_prompts; ++prompt) {
        const auto& attributes = reader.prompt(prompt);
        if (n_prompts > 1) text += fmt::format("\nprompt {} '{}'\n", prompt, one_line(attributes.name));
        if (!attributes.question.empty())
            text += fmt::format("\nasked: {}\n", first_line(attributes.question, longest_question));
        text += describe_runs(reader, prompt, {}, problems);
    }
    if (n_prompts > most_prompts)
        text += fmt::format("\n`kvscope inspect {}` prints the runs and answers of each prompt\n",
                            one_line(reader.path().string()));
    for (const auto& problem : problems) text += fmt::format("\n{}: {}\n", problem.path, one_line(problem.found));
    return text;
}

int inspect_trace(const fs::path& path, const OutputFormat& format, bool whole_text, const MemoryColumns& memory) {
    Problems problems = trace::find_problems(path);
    if (format.name() == "json") {
        print_json(path, memory, problems);
    } else if (format.is_text()) {
        print_text(path, format, whole_text, memory, problems);
    } else {
        print_table(path, format, memory, problems);
    }
    return n_errors(problems) > 0 ? 1 : 0;
}

}  // namespace kvscope::cli
