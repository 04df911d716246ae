#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/cost_table.h"
#include "analysis/figure_definition.h"
#include "analysis/reproduce.h"
#include "analysis/table_format.h"
#include "analysis/task_scores.h"
#include "app/cli/command.h"
#include "app/cli/inspect_model.h"
#include "app/cli/output_option.h"
#include "trace/check.h"
#include "trace/reader.h"
#include "trace/tree.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

/// On one line, at most that many bytes, cut between characters; control characters as their pictures (U+2400 …), so
/// that no text can command the terminal.
std::string first_line(const std::string& text, size_t most) {
    std::string shown;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (shown.size() >= most && (byte & 0xC0) != 0x80) return shown + " …";
        if (c == '\n')
            shown += ' ';
        else if (byte < 0x20)
            shown += {'\xE2', '\x90', static_cast<char>(0x80 + byte)};
        else if (byte == 0x7F)
            shown += "␡";
        else
            shown += c;
    }
    return shown;
}

std::string describe_prompt(const trace::Reader& reader, int index, bool whole_text) {
    const auto& prompt = reader.prompt(index);
    std::string text = fmt::format("\nprompt {} '{}': {} tokens", index, prompt.name, prompt.n_tokens);
    if (!prompt.question.empty())
        text += fmt::format(", {} of them before the question; policies {}", prompt.n_context,
                            prompt.query_aware ? "saw the question" : "did not see the question");
    text += fmt::format("\n  template {}, end-of-text ids", prompt.chat_template.empty() ? "none" : "applied");
    for (const int32_t id : prompt.eos_ids) text += fmt::format(" {}", id);
    text += fmt::format(", {}\n", prompt.truncated ? "cut" : "not cut");
    if (!prompt.question.empty()) text += fmt::format("  question: {}\n", first_line(prompt.question, 200));
    if (whole_text) {
        text += "  exact text sent to the model:\n" + prompt.text + "\n";
        if (!prompt.chat_template.empty()) text += "  template:\n" + prompt.chat_template + "\n";
    } else {
        text += fmt::format("  text (--prompt-text shows all): {}\n", first_line(prompt.text, 120));
    }
    return text;
}

std::string describe(const trace::Reader& reader, bool whole_text) {
    std::string text =
        fmt::format("{}: kvscope trace {}, {}, by {} on {}\n", reader.path().string(), reader.version(),
                    reader.complete() ? "complete" : "incomplete", reader.generator(), reader.created_utc());
    if (!reader.has_model()) return text + "no model yet\n";
    const auto& model = reader.model();
    text += fmt::format("{} ({}, {}): {} layers, {} heads, {} KV heads of {}, fingerprint {}\n", model.name,
                        model.family, model.dtype, model.n_layers, model.n_heads, model.n_kv_heads, model.head_dim,
                        model.fingerprint.substr(0, 16));
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        text += describe_prompt(reader, prompt, whole_text);
        if (reader.n_runs(prompt) > 0)
            text += "\n" + analysis::format_table(analysis::cost_table(reader, prompt), analysis::TableFormat::text);
        for (const auto& run : reader.runs(prompt)) {
            if (run.status != "complete")
                text += fmt::format("\n{} failed: {}\n", run.label, run.message);
            else if (!run.output_text.empty())
                text += fmt::format("\n{}: {}\n", run.label, first_line(run.output_text, 400));
        }
    }
    for (const auto& task : reader.result_tasks()) {
        const auto rows = reader.results(task);
        if (rows.empty()) continue;
        text += fmt::format("\nscores of {}\n{}{}\n", task,
                            analysis::format_table(analysis::task_scores_by_budget(rows), analysis::TableFormat::text),
                            analysis::task_verdict(rows));
    }
    return text;
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

analysis::Table problem_table(const std::vector<trace::Problem>& problems) {
    analysis::Table table{
        "problems",
        "Problems",
        {{"severity", "", ""}, {"path", "Path", ""}, {"expected", "Expected", ""}, {"found", "Found", ""}},
        {}};
    for (const auto& problem : problems)
        table.rows.push_back({{std::string(problem.severity == trace::Problem::Severity::error ? "error" : "warning"),
                               problem.path, problem.expected, problem.found}});
    return table;
}

/// The runs of all prompts as one table, so that one header names its columns.
analysis::Table runs_of_all_prompts(const trace::Reader& reader) {
    analysis::Table all;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        auto table = analysis::cost_table(reader, prompt);
        for (auto& row : table.rows) row.cells.insert(row.cells.begin(), int64_t{reader.prompt_number(prompt)});
        if (prompt == 0) {
            all = std::move(table);
            all.columns.insert(all.columns.begin(), {"prompt", "Prompt", "", analysis::ColumnType::integer});
        } else {
            std::move(table.rows.begin(), table.rows.end(), std::back_inserter(all.rows));
        }
    }
    return all;
}

int inspect_trace(const fs::path& path, const OutputFormat& format, bool whole_text) {
    const auto problems = trace::check(path);
    int errors = 0;
    for (const auto& problem : problems) errors += problem.severity == trace::Problem::Severity::error;
    if (format.name() == "json") {
        nlohmann::ordered_json answer{{"tree", tree_json(path)}, {"problems", nlohmann::ordered_json::array()}};
        for (const auto& problem : problems)
            answer["problems"].push_back(
                {{"severity", problem.severity == trace::Problem::Severity::error ? "error" : "warning"},
                 {"path", problem.path},
                 {"expected", problem.expected},
                 {"found", problem.found}});
        print(answer.dump(2) + "\n");
    } else if (format.is_text()) {
        const trace::Reader reader(path);
        print(describe(reader, whole_text));
        if (!problems.empty()) format.print(problem_table(problems));
        print(fmt::format("\n{}\n", errors ? fmt::format("{} errors: the trace breaks the format", errors)
                                           : "no errors: the trace keeps to the format"));
    } else {
        const trace::Reader reader(path);
        if (reader.n_prompts() > 0)
            format.print(runs_of_all_prompts(reader));
        else if (const auto tasks = reader.result_tasks(); !tasks.empty())
            format.print(analysis::task_scores(reader.results(tasks.front())));
    }
    if (errors && !format.is_text() && format.name() != "json")
        throw std::runtime_error(fmt::format("{} breaks the trace format in {} places: `kvscope inspect` lists them",
                                             path.string(), errors));
    return errors ? 1 : 0;
}

/// A line for each run of each prompt, to be given to a shell; a comment where there is no command.
std::string commands(const trace::Reader& reader) {
    std::string lines;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        for (int run = 0; run < reader.n_runs(prompt); ++run) {
            try {
                lines += analysis::reproduce_command(reader, prompt, run) + "\n";
            } catch (const analysis::NothingToShow& error) {
                lines += "# " + first_line(error.what(), 400) + "\n";
            }
        }
    }
    return lines;
}

std::function<int()> declare(CLI::App& app) {
    const auto path = std::make_shared<fs::path>();
    const auto as_commands = std::make_shared<bool>(false);
    const auto format = std::make_shared<OutputFormat>();
    const auto whole_text = std::make_shared<bool>(false);
    app.add_option("file", *path, "A trace, a .part folder, or a model")->required();
    app.add_flag("--prompt-text", *whole_text, "The exact text of the prompts and their templates");
    app.add_flag("--commands", *as_commands, "Only the commands that make each run's kept entries again");
    format->declare(app);
    return [path, format, whole_text, as_commands] {
        std::error_code error;
        if (!fs::exists(*path, error) && !fs::exists(path->string() + ".part", error))
            throw std::runtime_error(path->string() + " does not exist");
        if (*as_commands) {
            print(commands(trace::Reader(*path)));
            return 0;
        }
        return is_model(*path) ? inspect_model(*path, *format) : inspect_trace(*path, *format, *whole_text);
    };
}

}  // namespace

Command inspect_command() {
    return {"inspect", "What is in a trace or a model, checked",
            "  kvscope inspect demo.h5\n  kvscope inspect demo.h5 --format json\n  kvscope inspect model.gguf",
            declare};
}

}  // namespace kvscope::cli
