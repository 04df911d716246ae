#include "app/gui/view_data/run_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "analysis/shell_command.h"
#include "analysis/tables/table_format.h"
#include "app/gui/session/whole_path.h"
#include "app/program/input_files.h"
#include "common/file_text.h"
#include "common/json.h"
#include "common/lower_case.h"
#include "common/utf8.h"
#include "engine/tasks/api/task.h"
#include "policies/api/budget.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

using engine::RunOption;

std::string without_last_breaks(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error);
}

bool has_text(const fs::path& file, std::string_view text) {
    try {
        return file_text(file) == text;
    } catch (const std::system_error&) {
        return false;
    }
}

fs::path part_of(const fs::path& output) { return output.string() + ".part"; }

void add_task(analysis::ShellCommand& command, const TaskSettings& chosen) {
    command.add("--task", chosen.task->name);
    for (const policies::Parameter& parameter : chosen.values.declared()) {
        if (chosen.values.is_default(parameter.name)) continue;
        const std::string text = policies::to_text(chosen.values.value(parameter.name));
        const bool is_file = parameter.kind == policies::ParameterKind::file;
        command.add("--" + parameter.name, is_file ? absolute_path(text).string() : text);
    }
}

}  // namespace

std::vector<std::string> RunRequest::asked_questions() const {
    std::vector<std::string> asked;
    for (const auto& question : questions)
        if (!is_blank(question)) asked.push_back(without_last_breaks(question));
    return asked;
}

std::string changed_options_text(const RunOptions& options) {
    std::vector<std::string> changes;
    for (const RunOption& option : engine::run_options()) {
        if (option.in_form != RunOption::InForm::row || option.is_default(options)) continue;
        const bool is_switch = std::holds_alternative<bool RunOptions::*>(option.member);
        changes.push_back(is_switch                ? option.name
                          : option.choices.empty() ? fmt::format("{} {}", option.name, option.text(options))
                                                   : option.text(options));
    }
    return fmt::format("{}", fmt::join(changes, ", "));
}

void reset_seldom_changed_options(RunOptions& options) {
    for (const RunOption& option : engine::run_options())
        if (option.in_form == RunOption::InForm::row) option.reset(options);
}

bool applies_to_tasks(const RunOption& option) {
    return option.of_any_model || option.member == RunOption::Member(&RunOptions::n_new) ||
           option.member == RunOption::Member(&RunOptions::query_aware);
}

RunForm::RunForm() {
    request.budgets = "64,256";
    for (const auto& task : engine::tasks()) tasks.push_back({&task, policies::ParameterValues(task.parameters)});
    for (const auto& definition : policies::definitions()) {
        if (definition.is_full()) continue;
        rows.push_back({next_id_++,
                        definition.name == "snapkv" || definition.name == "aperturekv",
                        {&definition, policies::ParameterValues(definition.parameters)}});
    }
}

void RunForm::choose_task(std::optional<size_t> place) {
    const auto usual = [this] { return task() ? task()->task->n_new : RunOptions().n_new; };
    const bool is_usual = request.options.n_new == usual();
    task_ = place;
    if (is_usual) request.options.n_new = usual();
}

RunOptions RunForm::applied_options() const {
    RunOptions options = request.options;
    for (const RunOption& option : engine::run_options())
        if (task_ && !applies_to_tasks(option)) option.reset(options);
    return options;
}

void RunForm::duplicate(size_t row) {
    PolicyRow copy = rows.at(row);
    copy.id = next_id_++;
    copy.ticked = true;
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(row) + 1, std::move(copy));
}

bool RunForm::use(const WantedPolicy& wanted) {
    const auto row_that = [&](const auto& fits) {
        return std::ranges::find_if(rows, [&](const PolicyRow& row) {
            return row.spec.definition->name == wanted.policy && fits(row.spec.values);
        });
    };
    const auto any = row_that([](const auto&) { return true; });
    if (any == rows.end()) return false;
    policies::ParameterValues values = any->spec.values;
    try {
        values.set(wanted.parameter, wanted.value);
    } catch (const policies::ParameterError&) {
        return false;
    }
    auto row = row_that([&](const auto& of) { return of.value(wanted.parameter) == values.value(wanted.parameter); });
    if (row == rows.end()) row = row_that([&](const auto& of) { return of.is_default(wanted.parameter); });
    if (row == rows.end()) {
        const auto at = any - rows.begin();
        duplicate(static_cast<size_t>(at));
        row = rows.begin() + at + 1;
    }
    row->spec.values.set(wanted.parameter, wanted.value);
    row->ticked = true;
    return true;
}

bool RunForm::remove(size_t row) {
    const auto* definition = rows.at(row).spec.definition;
    const auto n =
        std::ranges::count_if(rows, [&](const PolicyRow& other) { return other.spec.definition == definition; });
    if (n < 2) return false;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(row));
    return true;
}

int RunForm::n_ticked() const {
    return static_cast<int>(std::ranges::count_if(rows, [](const PolicyRow& row) { return row.ticked; }));
}

void RunForm::tick(const std::function<bool(const PolicyRow&)>& is_chosen) {
    for (PolicyRow& row : rows) row.ticked = is_chosen(row);
}

bool RunForm::is_begun() const {
    return (task_ || !request.sources.empty() || !is_blank(request.context)) && n_ticked() > 0;
}

FormProblem RunForm::problem(const std::optional<TokenCount>& tokens) const {
    using enum FormProblem::Section;
    if (!task_ && request.sources.empty() && is_blank(request.context)) return {"Write a prompt or choose a sample."};
    if (n_ticked() == 0) return {"Tick at least one policy."};
    if (std::string wrong = task_file_problem(); !wrong.empty()) return {wrong, prompt};
    if (std::string wrong = source_problem(); !wrong.empty()) return {wrong, prompt};
    if (std::string wrong = budget_problem(); !wrong.empty()) return {wrong, budgets};
    const RunOptions options = applied_options();
    for (const RunOption& option : engine::run_options())
        if (std::string wrong = option.problem(options); !wrong.empty())
            return {wrong, option.in_form == RunOption::InForm::row ? none : output};
    if (std::string wrong = output_problem(); !wrong.empty()) return {wrong, output};
    if (std::string wrong = length_problem(tokens); !wrong.empty()) return {wrong, prompt};
    for (size_t i = 0; i < rows.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            if (rows[i].ticked && rows[j].ticked && rows[i].spec == rows[j].spec)
                return {fmt::format("{} is ticked twice with the same parameters.", rows[i].spec.label())};
        }
    }
    return {};
}

std::string RunForm::budget_problem() const {
    try {
        policies::parse_budgets(request.budgets);
    } catch (const policies::BudgetError& error) {
        return error.what();
    }
    return {};
}

std::string RunForm::length_problem(const std::optional<TokenCount>& tokens) const {
    using analysis::format_count;
    if (!tokens || !tokens->error.empty()) return tokens ? tokens->error : "";
    const bool is_list = !request.sources.empty() && !tokens->lengths.empty();
    const int64_t n = is_list ? std::ranges::min(tokens->lengths) : tokens->n_tokens;
    const int64_t context = tokens->context_length, n_new = request.options.n_new;
    if (context <= 0 || n_new <= context - n) return {};
    const std::string what = fmt::format("{}{} tokens and {} new ones do not fit into the context of {} tokens: ",
                                         is_list ? "No prompt fits. In the shortest prompt, " : "", format_count(n),
                                         format_count(n_new), format_count(context));
    const std::string fewer = n < context ? fmt::format("generate at most {}", format_count(context - n)) : "";
    if (n_new >= context) return what + (fewer.empty() ? "shorten the text and generate fewer tokens" : fewer);
    return fmt::format("{}shorten the text by {} tokens{}{}", what, format_count(n_new - (context - n)),
                       fewer.empty() ? "" : ", or ", fewer);
}

int RunForm::n_too_long(const TokenCount& tokens) const {
    const int64_t most = tokens.context_length - request.options.n_new;
    const auto is_too_long = [&](int64_t n) { return tokens.context_length > 0 && n > most; };
    return static_cast<int>(std::ranges::count_if(tokens.lengths, is_too_long));
}

std::string RunForm::problem_with(RunOption::Member option) const {
    return engine::run_option(option).problem(request.options);
}

std::string RunForm::task_file_problem() const {
    if (!task_) return "";
    for (const policies::Parameter& parameter : task()->values.declared()) {
        if (parameter.kind != policies::ParameterKind::file) continue;
        const std::string& path = task()->values.text(parameter.name);
        std::error_code error;
        if (path.empty() && task()->task->needs_file)
            return fmt::format("The task {} needs a file: set {}.", task()->task->name, parameter.name);
        if (!path.empty() && !is_there(path)) return fmt::format("{}: there is no file {}", parameter.name, path);
        const bool may_be_folder = !task()->task->ending_in_folder(parameter.name).empty();
        if (fs::is_directory(path, error) && !may_be_folder)
            return fmt::format("{}: {} is a folder: choose a file in it", parameter.name, path);
    }
    return "";
}

std::string RunForm::source_problem() const {
    if (task_ || request.sources.empty()) return "";
    for (const fs::path& source : request.sources)
        if (!is_there(source))
            return fmt::format("{} does not exist: restore it, or remove it from the list", source.string());
    for (const auto& read : contents)
        if (!read.error.empty()) return read.error;
    const bool is_read =
        contents.size() == request.sources.size() && std::ranges::all_of(contents, &TaskResult<PromptSource>::current);
    if (!is_read || n_prompts() > 0) return "";
    const auto wrong = std::ranges::find_if(contents, [](const auto& read) { return !read.value->problems.empty(); });
    return "There is no prompt. " + (wrong == contents.end() ? "" : wrong->value->problems.front());
}

std::string RunForm::output_problem() const {
    std::error_code error;
    const fs::path& output = request.output;
    if (output.empty()) return "";
    if (output.filename().empty() || fs::is_directory(output, error))
        return fmt::format("{} is a folder: enter the name of a file in it", output.string());
    const fs::path folder = output.parent_path().empty() ? fs::path(".") : output.parent_path();
    if (!fs::is_directory(folder, error))
        return fmt::format("cannot write {}: the folder {} does not exist", output.string(), folder.string());
    return "";
}

std::string RunForm::output_note() const {
    const fs::path& output = request.output;
    if (output.empty()) {
        std::error_code error;
        const fs::path folder = fs::current_path(error);
        if (error) return fmt::format("the folder in which kvscope was started no longer exists: {}", error.message());
        return fmt::format("{} in {} will be a new file", find_free_output_path().string(), folder.string());
    }
    const std::string name = output.filename().string();
    if (request.force && is_there(output)) return fmt::format("{} is replaced once the new trace is complete", name);
    if (request.force && is_there(part_of(output)))
        return fmt::format("{}.part is replaced, unless it belongs to the same run, which then continues", name);
    if (is_there(output))
        return fmt::format(
            "{} exists: missing runs are added, and existing runs stay. With another prompt, "
            "model or option, the run is refused",
            name);
    if (is_there(part_of(output)))
        return fmt::format("{}.part exists: the same run continues there, and any other run is refused", name);
    return fmt::format("{} is a new file", name);
}

std::vector<std::string> RunForm::budget_lines(const std::optional<TokenCount>& tokens) const {
    std::vector<std::string> lines;
    // If all ticked policies keep every token, the lines give bytes instead of entries.
    const bool all_of_bytes = n_ticked() > 0 && std::ranges::all_of(rows, [](const PolicyRow& row) {
                                  return !row.ticked || row.spec.definition->budget_of == policies::BudgetOf::bytes;
                              });
    const bool is_known = tokens && tokens->error.empty() && tokens->n_visible > 0;
    for (const auto& budget : policies::parse_budgets(request.budgets)) {
        if (is_known && all_of_bytes) {
            add_lines_of_bytes(budget, *tokens, lines);
            continue;
        }
        lines.push_back(
            is_known ? budget.describe(tokens->n_visible, policies::BudgetOf::entries, {}, analysis::format_count)
                     : fmt::format("{} {}", budget_text(budget),
                                   budget.is_share ? "of the prompt kept" : "entries kept per KV head"));
    }
    return lines;
}

void RunForm::add_lines_of_bytes(const policies::Budget& budget, const TokenCount& tokens,
                                 std::vector<std::string>& lines) const {
    std::vector<std::pair<std::string, std::string>> of_policies;
    for (const PolicyRow& row : rows) {
        if (!row.ticked || row.spec.own_share()) continue;
        of_policies.emplace_back(row.spec.definition->title,
                                 budget.describe(tokens.n_visible, policies::BudgetOf::bytes,
                                                 row.spec.needed_share(budget, tokens.cache_size())));
    }
    const bool is_one =
        std::ranges::all_of(of_policies, [&](const auto& of) { return of.second == of_policies.front().second; });
    if (is_one && !of_policies.empty()) of_policies.resize(1);
    for (const auto& [title, line] : of_policies) lines.push_back(is_one ? line : fmt::format("{}: {}", title, line));
}

int RunForm::n_runs() const {
    try {
        const auto n_budgets = static_cast<int>(policies::parse_budgets(request.budgets).size());
        int n = 1;
        for (const PolicyRow& row : rows)
            if (row.ticked) n += row.spec.own_share() ? 1 : n_budgets;
        return n;
    } catch (const policies::BudgetError&) {
        return 0;
    }
}

int RunForm::n_prompts() const {
    if (task_) return 1;
    const int n_asked = std::max(1, static_cast<int>(request.asked_questions().size()));
    if (request.sources.empty()) return n_asked;
    int n = 0;
    for (const auto& read : contents)
        if (read.value)
            n += read.value->n_with_question + n_asked * (read.value->n_prompts - read.value->n_with_question);
    return n;
}

int RunForm::n_questions() const {
    const bool any_of_prompt = !request.sources.empty() && std::ranges::any_of(contents, [](const auto& read) {
        return read.value && read.value->n_with_question > 0;
    });
    return std::max(any_of_prompt ? 1 : 0, static_cast<int>(request.asked_questions().size()));
}

RunRequest RunForm::filled_in() const {
    RunRequest filled = request;
    filled.questions = request.asked_questions();
    filled.options = applied_options();
    if (task_) filled.task = *task();
    filled.force = request.force && !request.output.empty();
    filled.policies.clear();
    for (const PolicyRow& row : rows)
        if (row.ticked) filled.policies.push_back(row.spec.label());
    return filled;
}

void RunForm::add_prompt(analysis::ShellCommand& command, const RunRequest& wanted) const {
    const bool is_file =
        !prompt_file.empty() && prompt_file.stem() == wanted.name && has_text(prompt_file, wanted.context);
    if (!wanted.sources.empty()) {
        for (const fs::path& source : wanted.sources) command.add_path(absolute_path(source));
    } else if (is_file) {
        command.add("-f", absolute_path(prompt_file).string());
    } else {
        command.add("--prompt", wanted.context);
        if (wanted.name != RunRequest().name) command.add("--prompt-name", wanted.name);
    }
    for (const auto& question : wanted.questions) command.add("--question", question);
}

std::string RunForm::command(const fs::path& model) const {
    RunRequest wanted = filled_in();
    wanted.options.analyze = !task_ && !wanted.options.stores_only_rows() && wanted.spectra.value_or(false);
    analysis::ShellCommand command(task_ ? "kvscope eval" : "kvscope run");
    if (!model.empty()) command.add("-m", absolute_path(model).string());
    task_ ? add_task(command, *task()) : add_prompt(command, wanted);
    for (const auto& policy : wanted.policies) command.add("--policy", policy);
    command.add("--budget", wanted.budgets);
    command.add(engine::to_command_line_options(wanted.options));
    command.add("--output", wanted.output.empty() ? find_free_output_path().string() : wanted.output.string());
    if (wanted.force) command.add("--force");
    return command.text();
}

nlohmann::json RunForm::to_json() const {
    nlohmann::json policies = nlohmann::json::array();
    for (const PolicyRow& row : rows) policies.push_back({{"policy", row.spec.label()}, {"ticked", row.ticked}});
    nlohmann::json state = {{"name", request.name},         {"context", request.context},
                            {"file", prompt_file.string()}, {"questions", request.questions},
                            {"budgets", request.budgets},   {"output", request.output.string()},
                            {"policies", policies}};
    state["sources"] = nlohmann::json::array();
    for (const fs::path& source : request.sources) state["sources"].push_back(source.string());
    for (const RunOption& option : engine::run_options()) {
        if (option.in_form == RunOption::InForm::no) continue;
        std::visit([&](auto member) { state[option.key] = request.options.*member; }, option.member);
    }
    if (request.spectra) state["spectra"] = *request.spectra;
    for (const auto& [task, values] : tasks)
        for (const auto& parameter : task->parameters)
            state["tasks"][task->name][parameter.name] = policies::to_text(values.value(parameter.name));
    if (task_) state["task"] = task()->task->name;
    return state;
}

void RunForm::from_json(const nlohmann::json& state) {
    if (!state.is_object()) return;
    request.name = state.value("name", request.name);
    request.context = state.value("context", request.context);
    prompt_file = state.value("file", std::string());
    request.questions.clear();
    if (const std::string only = state.value("question", std::string()); !only.empty())
        request.questions = {only};  // from earlier versions, which had one question
    request.questions = state.value("questions", request.questions);
    const auto sources = state.value("sources", std::vector<std::string>());
    request.sources.assign(sources.begin(), sources.end());
    contents.clear();
    request.budgets = state.value("budgets", request.budgets);
    for (const RunOption& option : engine::run_options())
        if (option.in_form != RunOption::InForm::no) option.read(state, request.options);
    request.output = state.value("output", std::string());
    if (state.contains("spectra") && state["spectra"].is_boolean()) request.spectra = state["spectra"].get<bool>();
    read_tasks(state);
    if (!state.contains("policies") || !state["policies"].is_array()) return;
    std::vector<PolicyRow> read;
    for (const auto& saved : state["policies"]) {
        try {
            read.push_back({next_id_++, saved.value("ticked", false),
                            policies::parse_policy(saved.value("policy", std::string()))});
        } catch (const std::exception&) {
            continue;
        }
    }
    for (PolicyRow& row : rows) {  // policies that did not exist when the state was saved
        const bool is_there = std::ranges::any_of(
            read, [&](const PolicyRow& other) { return other.spec.definition == row.spec.definition; });
        if (!is_there) read.push_back({row.id, false, std::move(row.spec)});
    }
    rows = std::move(read);
}

void RunForm::read_tasks(const nlohmann::json& state) {
    task_.reset();
    for (size_t i = 0; i < tasks.size(); ++i) {
        auto& [task, values] = tasks[i];
        if (state.contains("task") && state["task"] == task->name) task_ = i;
        for (const auto& parameter : task->parameters) {
            const nlohmann::json::json_pointer place("/tasks/" + task->name + "/" + parameter.name);
            if (!state.contains(place) || !state[place].is_string()) continue;
            try {
                values.set(parameter.name, state[place].get<std::string>());
            } catch (const policies::ParameterError&) {
                continue;
            }
        }
    }
}

void RunForm::read_prompt(const fs::path& file) {
    const std::string name = file.filename().string();
    std::error_code error;
    if (fs::is_directory(file, error))
        throw PromptFileError(fmt::format("{} is a folder: choose a text file in it", file.string()));
    const uintmax_t bytes = fs::file_size(file, error);
    if (error == std::errc::no_such_file_or_directory) throw PromptFileError(file.string() + " does not exist");
    if (error) throw PromptFileError(fmt::format("{} cannot be read: {}", file.string(), error.message()));
    if (bytes > most_prompt_bytes)
        throw PromptFileError(
            fmt::format("{} has {}, but the form accepts at most {}. Use `kvscope run -f` for larger texts", name,
                        analysis::format_bytes(static_cast<double>(bytes)),
                        analysis::format_bytes(static_cast<double>(most_prompt_bytes))));
    std::string text = program::read_prompt(file);
    if (is_blank(text)) throw PromptFileError(fmt::format("{} is empty: choose a file with the prompt's text", name));
    if (const size_t at = text.find('\0'); at != std::string::npos)
        throw PromptFileError(
            fmt::format("{} is not a text file: byte {} is zero. Choose a text file in UTF-8", name, at));
    if (const size_t at = first_invalid_utf8(text); at != std::string::npos)
        throw PromptFileError(fmt::format(
            "{} is not UTF-8: byte {} in line {} is {:02X}, which does not begin a character. Save it as UTF-8", name,
            at, 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
            static_cast<unsigned char>(text[at])));
    choose_task({});
    request.context = std::move(text);
    request.name = file.stem().string();
    prompt_file = absolute_path(file);
}

void RunForm::take_sample(const std::string& name) {
    const SamplePrompt sample = read_sample_prompt(name);
    request.name = sample.name;
    request.context = sample.context;
    request.questions = {sample.question};
    prompt_file.clear();
}

void RunForm::add_sources(const std::vector<fs::path>& paths) {
    for (const fs::path& path : paths) {
        fs::path source = absolute_path(path).lexically_normal();
        if (source.filename().empty()) source = source.parent_path();  // the path of a folder ended in "/"
        if (std::ranges::find(request.sources, source) == request.sources.end()) request.sources.push_back(source);
    }
    choose_task({});
}

void RunForm::remove_source(size_t place) {
    const auto at = static_cast<std::ptrdiff_t>(place);
    request.sources.erase(request.sources.begin() + at);
    if (place < contents.size()) contents.erase(contents.begin() + at);
}

std::string budget_text(const policies::Budget& budget) {
    return budget.is_share ? budget.label() : analysis::format_count(budget.count);
}

bool is_text_file(const fs::path& path) {
    const std::string extension = lower_case(path.extension().string());
    return extension == ".txt" || extension == ".md" || extension == ".markdown";
}

bool is_prompt_source(const fs::path& path) {
    const std::string extension = lower_case(path.extension().string());
    std::error_code error;
    if (fs::is_directory(path, error)) return extension != ".part" && !fs::exists(path / "config.json", error);
    return is_text_file(path) || extension == ".jsonl" || extension == ".ndjson";
}

std::string stamp_of_file(const fs::path& path) {
    std::error_code error;
    const auto written = fs::last_write_time(path, error);
    return error ? "missing" : fmt::format("{}", written.time_since_epoch().count());
}

fs::path find_free_output_path(const std::function<bool(const fs::path&)>& is_taken) {
    for (int i = 1;; ++i) {
        fs::path path = fmt::format("kvscope-{}.h5", i);
        if (!is_there(path) && !is_there(part_of(path)) && !(is_taken && is_taken(path))) return path;
    }
}

const std::vector<std::pair<std::string, std::string>>& sample_prompts() {
    static const std::vector<std::pair<std::string, std::string>> all = {
        {"demo", "Demo prompt of about 2,000 tokens"},
        {"needle", "A fact hidden in a log"},
        {"translation", "One sentence in many scripts"},
        {"code", "A class with a bug"}};
    return all;
}

SamplePrompt read_sample_prompt(const std::string& name) {
    using program::asset_path;
    using program::read_text;
    if (name == "demo") {
        return {name, read_text(asset_path("demo/demo_context.txt")),
                without_last_breaks(read_text(asset_path("demo/demo_question.txt")))};
    }
    const std::string text = read_text(asset_path("prompts/" + name + ".txt"));
    const size_t line = text.find("\n---\n");
    if (line == std::string::npos) return {name, text, {}};
    return {name, text.substr(0, line), without_last_breaks(text.substr(line + 5))};
}

}  // namespace kvscope::gui
