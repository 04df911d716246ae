#include "app/program/engine/run_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "app/program/input_files.h"
#include "app/program/version.h"
#include "engine/projection_spectra.h"
#include "engine/run_requirements.h"
#include "engine/trace_extension.h"
#include "policies/api/budget.h"
#include "policies/registry/feasibility.h"
#include "trace/creation_time.h"
#include "trace/part_folder.h"
#include "trace/reader.h"
#include "trace/recipe.h"

namespace kvscope::program {
namespace {

/// Splits "trace.h5:2" or "trace.h5:0,1" into file and prompt numbers. Without numbers, returns prompt 0.
std::pair<std::filesystem::path, std::vector<int>> trace_and_prompts(const std::string& text) {
    const size_t colon = text.rfind(':');
    std::error_code error;
    if (colon == std::string::npos || std::filesystem::exists(text, error)) return {text, {0}};
    std::vector<int> prompts;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data() + colon + 1;; ++at) {
        int prompt = 0;
        const auto read = std::from_chars(at, end, prompt);
        if (read.ec != std::errc() || prompt < 0 || (read.ptr != end && *read.ptr != ',')) return {text, {0}};
        prompts.push_back(prompt);
        if (read.ptr == end) return {text.substr(0, colon), std::move(prompts)};
        at = read.ptr;
    }
}

std::vector<engine::Prompt> prompts_of(const RunJob& job, const engine::Model& model, std::time_t now) {
    if (!job.prompt_from.empty()) {
        const auto [path, numbers] = trace_and_prompts(job.prompt_from);
        const trace::Reader reader(path);
        std::vector<engine::Prompt> stored;
        for (const int number : numbers)
            stored.push_back(engine::read_prompt_from_trace(model, reader, number, job.experiment.n_new));
        return stored;
    }
    std::vector<engine::Prompt> prompts;
    for (const auto& text : job.prompts) {
        const engine::PromptOptions options{.name = text.name,
                                            .use_template = job.experiment.use_template,
                                            .query_aware = job.experiment.query_aware,
                                            .n_new = job.experiment.n_new,
                                            .origin = text.origin,
                                            .parse_special = job.experiment.parse_special,
                                            .now = now};
        if (text.questions.empty()) prompts.push_back(engine::tokenize_prompt(model, text.context, "", options));
        for (const auto& question : text.questions)
            prompts.push_back(engine::tokenize_prompt(model, text.context, question, options));
    }
    return prompts;
}

void warn(const RunEvents& events, engine::Progress& progress, const std::string& text) {
    events.on_warning ? events.on_warning(text) : progress.message(text);
}

class Failures {
 public:
    Failures(std::span<const engine::RunPlan> plans, const RunEvents& events, engine::Progress& progress)
        : plans_(plans), events_(events), progress_(progress) {}

    void tell(int prompt, int run, const std::string& name, const trace::RunAttributes& attributes) {
        if (attributes.status != trace::schema::run::status_failed || !told_.emplace(prompt, run).second) return;
        const auto place = static_cast<size_t>(run);
        warn(events_, progress_,
             fmt::format("{}: the run {} failed: {}", name,
                         place < plans_.size() ? plans_[place].asked() : attributes.label, attributes.message));
    }

    int tell_all(const trace::Reader& reader) {
        int n_runs = 0;
        for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
            n_runs += reader.n_runs(prompt);
            for (int run = 0; run < reader.n_runs(prompt); ++run)
                tell(reader.prompt_number(prompt), reader.run_number(prompt, run), reader.prompt(prompt).name,
                     reader.run(prompt, run));
        }
        const auto n_failed = static_cast<int>(told_.size());
        if (n_failed > 0)
            warn(events_, progress_,
                 fmt::format("{} of {} runs failed. Failed runs count as finished and are not repeated", n_failed,
                             n_runs));
        return n_failed;
    }

 private:
    std::span<const engine::RunPlan> plans_;
    const RunEvents& events_;
    engine::Progress& progress_;
    std::set<std::pair<int, int>> told_;
};

}  // namespace

RunJob demo_job(const std::filesystem::path& output) {
    RunJob job;
    std::string question = read_text(asset_path("demo/demo_question.txt"));
    while (!question.empty() && question.back() == '\n') question.pop_back();
    job.prompts.push_back({"demo", read_text(asset_path("demo/demo_context.txt")), {question}});
    job.policies = {"streaming-llm", "h2o",  "snapkv", "pyramidkv", "ada-snapkv", "aperturekv",
                    "k-vec",         "dapq", "laq",    "gemfilter", "random",     "oracle"};
    job.budgets = {"64,256"};
    job.experiment.n_new = 48;
    job.experiment.analyze = true;
    job.output = output;
    return job;
}

namespace {

/// Refuses a policy without its file before the model is loaded, because all runs of the policy would fail.
void require_file(const policies::PolicySpec& spec) {
    const policies::Parameter* file = policies::find_file_parameter(spec);
    if (file && spec.values.text(file->name).empty())
        throw std::invalid_argument(fmt::format("--policy {0} needs the parameter {1}, as in {0}:{1}=PATH. {1}: {2}",
                                                spec.definition->name, file->name, file->help));
}

/// Writes the spectra only after the answers, because computing them can take longer than all answers.
void write_model(trace::Writer& writer, const engine::Model& model, bool with_spectra, engine::Progress& progress) {
    trace::ModelRecord record;
    static_cast<trace::ModelAttributes&>(record) = model.attributes();
    if (with_spectra) engine::add_projection_spectra(model.checkpoint(), model.fingerprint(), record, progress);
    writer.write_model(record);
}

std::vector<policies::Budget> budgets_of(const RunJob& job) {
    std::vector<policies::Budget> budgets;
    for (const auto& text : job.budgets) {
        for (const auto& budget : policies::parse_budgets(text)) budgets.push_back(budget);
    }
    return budgets;
}

std::vector<std::string> policies_of(const RunJob& job) {
    std::vector<std::string> policies;
    for (const auto& list : job.policies) {
        for (auto& text : policies::split_policies(list)) policies.push_back(std::move(text));
    }
    return policies;
}

/// Returns the plans in the order of the command, without the full run. Plans may be repeated.
std::vector<engine::RunPlan> asked_plans(const RunJob& job) {
    const std::vector<policies::Budget> budgets = budgets_of(job);
    if (job.policies.empty() && !budgets.empty())
        throw std::invalid_argument(fmt::format(
            "the budget {} needs a policy: name one with --policy. Without a policy, only the full cache is run",
            budgets.front().label()));
    std::vector<engine::RunPlan> plans;
    for (const auto& text : policies_of(job)) {
        const auto spec = policies::parse_policy(text);
        if (spec.definition->is_full()) continue;
        if (job.requires_files) require_file(spec);
        if (const auto share = spec.own_share()) {
            plans.push_back({spec, {.is_share = true, .share = *share}});
            continue;
        }
        if (budgets.empty())
            throw std::invalid_argument(text + " needs a budget: entries kept per KV head and layer (128), " +
                                        "or the share kept (0.2, 20%)");
        for (const auto& budget : budgets) plans.push_back({spec, budget});
    }
    return plans;
}

}  // namespace

std::vector<engine::RunPlan> run_plans_of_job(const RunJob& job) {
    return engine::with_full_run_first(asked_plans(job));
}

std::vector<std::string> settings_without_effect(const RunJob& job) {
    const std::vector<engine::RunPlan> plans = asked_plans(job);
    std::vector<std::string> lines;
    const bool has_use_for_budgets =
        std::any_of(plans.begin(), plans.end(), [](const engine::RunPlan& plan) { return !plan.spec.own_share(); });
    if (!job.budgets.empty() && !has_use_for_budgets)
        lines.push_back(
            fmt::format("--budget {} has no effect: none of the policies uses a budget", fmt::join(job.budgets, " ")));
    const bool has_questions = std::any_of(job.prompts.begin(), job.prompts.end(),
                                           [](const PromptText& prompt) { return !prompt.questions.empty(); });
    if (!job.experiment.query_aware && !job.prompts.empty() && !has_questions)
        lines.emplace_back("--query-aware off has no effect: no prompt has a question");
    std::map<std::string, int> times;
    for (const engine::RunPlan& plan : plans) ++times[plan.label()];
    for (const auto& [label, n] : times)
        if (n > 1) lines.push_back(fmt::format("{} is named {} times, but runs once", label, n));
    return lines;
}

void check_prompt_trace_is_readable(const RunJob& job) {
    if (!job.prompt_from.empty()) trace::Reader(trace_and_prompts(job.prompt_from).first);
}

std::vector<std::string> budget_lines(std::span<const engine::RunPlan> plans, const engine::Prompt& prompt,
                                      const engine::Transformer& model) {
    const policies::CacheSize size{model.shape(), prompt.n_visible(),
                                   static_cast<double>(kernels::size_of(model.dtype()))};
    std::vector<std::string> lines;
    for (const auto& plan : plans) {
        if (plan.spec.definition->is_full()) continue;
        const auto of = plan.spec.definition->budget_of;
        std::string what = fmt::format("budget {}", plan.budget.label());
        if (of == policies::BudgetOf::bytes) what = fmt::format("{}, {}", plan.spec.label(), what);
        if (plan.spec.own_share()) what = plan.spec.label() + " (fixed share, approximately)";
        try {
            std::string line =
                fmt::format("{}: {}", what,
                            plan.budget.describe(prompt.n_visible(), of, plan.spec.needed_share(plan.budget, size)));
            if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
        } catch (const std::invalid_argument&) {
            // The run with this budget reports the error.
        }
    }
    return lines;
}

namespace {

/// Whether the folder contains no results, no answers and no files of other programs.
bool is_worthless(const std::filesystem::path& folder, bool with_prompts) {
    const trace::Parts parts = trace::list_parts(folder);
    if (!parts.runs.empty() || !parts.results.empty() || (!with_prompts && !parts.prompts.empty())) return false;
    if (std::filesystem::exists(folder / trace::answers_name) || !trace::foreign_entry(folder).empty()) return false;
    const std::filesystem::directory_iterator entries(folder);
    return std::none_of(begin(entries), end(entries),
                        [](const auto& entry) { return trace::is_damaged_part_set_aside(entry.path()); });
}

void remove_trace_without_runs(const std::filesystem::path& output, bool with_prompts) {
    const std::filesystem::path folder = trace::part_folder_of(output);
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) return;
    try {
        const trace::FolderLock held(folder);
        if (is_worthless(folder, with_prompts)) trace::remove_folder(folder);
    } catch (const std::runtime_error&) {
        // The folder stays if another process uses it or if it cannot be removed.
    }
}

}  // namespace

void remove_part_folder_without_results(const std::filesystem::path& output) {
    remove_trace_without_runs(output, true);
}

void remove_part_folder_without_prompts(const std::filesystem::path& output) {
    remove_trace_without_runs(output, false);
}

namespace {

struct Whole {
    std::vector<engine::Prompt> prompts;
    std::vector<engine::RunPlan> plans;
    size_t n_prompts_there = 0, n_plans_there = 0;  ///< first prompts and plans that a complete trace already contains
    std::string recipe;
    trace::WriterOptions options;
};

void require_same_tokens(const trace::Reader& stored, std::span<const engine::Prompt> prompts) {
    for (int i = 0; i < stored.n_prompts(); ++i) {
        const auto number = static_cast<size_t>(stored.prompt_number(i));
        if (number >= prompts.size()) continue;
        const auto& prompt = prompts[number];
        const auto ids = stored.token_ids(i);
        const int64_t n_context = stored.prompt(i).n_context;
        if (ids == prompt.ids && n_context == prompt.n_context) continue;
        const auto at = std::mismatch(ids.begin(), ids.end(), prompt.ids.begin(), prompt.ids.end()).first - ids.begin();
        const std::string other =
            ids == prompt.ids ? fmt::format("another position of the question's first token ({} in the file, {} now)",
                                            n_context, prompt.n_context)
                              : fmt::format("different tokens from token {} on ({} tokens in the file, {} now)", at,
                                            ids.size(), prompt.ids.size());
        std::string why = "another version of the tokenizer or of kvscope wrote the file";
        if (engine::recipe_lacks_token_ids(stored.recipe_json()))
            why = "an earlier version of kvscope wrote the file and tokenized context and question separately";
        else if (ids != prompt.ids && prompt.chat_template.empty() && prompt.parses_special)
            why +=
                ". An earlier version read control tokens in a text without chat template as plain text, as with "
                "--no-special";
        throw trace::ReplaceableOutputExists(
            fmt::format("{} contains the prompt \"{}\" with {}: {}. Choose another output, or replace the file",
                        stored.path().string(), prompt.name, other, why));
    }
}

Whole whole_at(std::time_t now, const RunJob& job, std::vector<engine::RunPlan> plans, const engine::Model& model) {
    Whole whole{
        prompts_of(job, model, now), std::move(plans), 0, 0, {}, {job.force, fmt::format("kvscope {}", version())}};
    whole.options.created = now;
    const std::string complete = trace::read_recipe_of_trace(job.output);
    const std::string begun = trace::read_recipe_of_trace(trace::part_folder_of(job.output));
    const auto recipe_of = [&](const Whole& one) {
        const std::string asked = engine::recipe_json(model, one.prompts, one.plans, job.experiment);
        std::string wanted = engine::recipe_with_render_times(asked, one.prompts, now);
        if (job.force) return wanted;
        return engine::with_stored_prompt_entries(begun, engine::with_stored_prompt_entries(complete, wanted));
    };
    if (!job.force) {
        whole.prompts = engine::in_order_of_recipe(complete, std::move(whole.prompts));
        whole.plans = engine::in_order_of_recipe(complete, std::move(whole.plans), true);
        // If a complete trace contains everything that the command requests, an unfinished extension of the trace is
        // ignored.
        if (!trace::can_extend_recipe_to(recipe_of(whole), complete)) {
            Whole continued = whole;
            continued.prompts = engine::in_order_of_recipe(begun, std::move(continued.prompts));
            continued.plans = engine::in_order_of_recipe(begun, std::move(continued.plans), false);
            if (trace::can_extend_recipe_to(begun, recipe_of(continued))) whole = std::move(continued);
        }
        whole.recipe = recipe_of(whole);
        whole.options.is_part_of_it = [wanted = whole.recipe](const std::string& other) {
            return trace::can_extend_recipe_to(other, wanted);
        };
        if (whole.options.is_part_of_it(complete)) {
            const trace::Reader stored(job.output);
            require_same_tokens(stored, whole.prompts);
            engine::refuse_questions_that_change_runs(stored, whole.prompts, whole.plans);
            whole.n_prompts_there = static_cast<size_t>(stored.n_prompts());
            if (whole.prompts.size() > whole.n_prompts_there) engine::require_recorded_files(job.output, whole.plans);
            whole.n_plans_there = stored.n_prompts() > 0 ? static_cast<size_t>(stored.n_runs(0)) : 0;
        }
        const auto folder = trace::part_folder_of(job.output);
        if (whole.options.is_part_of_it(trace::read_recipe_of_trace(folder))) {
            const trace::Reader unfinished(folder);
            require_same_tokens(unfinished, whole.prompts);
            engine::refuse_questions_that_change_runs(unfinished, whole.prompts, whole.plans);
        }
    } else {
        whole.recipe = recipe_of(whole);
    }
    return whole;
}

/// Renders chat templates with the creation time of an existing trace, because the rendered text may contain the date.
Whole whole_of(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model) {
    if (const auto stored = trace::creation_time(job.output)) {
        Whole whole = whole_at(*stored, job, plans, model);
        // With --force, a new trace with today's date replaces a trace of another recipe.
        if (!job.force ||
            trace::check_output_state(job.output, whole.recipe, whole.options) == trace::OutputState::resumable)
            return whole;
    }
    return whole_at(std::time(nullptr), job, plans, model);
}

/// Returns the full run and the runs that the trace does not yet contain for this prompt.
std::vector<engine::RunPlan> plans_left(const Whole& whole, size_t prompt) {
    std::vector<engine::RunPlan> left = whole.plans;
    if (prompt < whole.n_prompts_there && whole.n_plans_there > 0)
        left.erase(left.begin() + 1, left.begin() + static_cast<std::ptrdiff_t>(whole.n_plans_there));
    return left;
}

}  // namespace

void check_job(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model) {
    const Whole whole = whole_of(job, plans, model);
    for (size_t i = 0; i < whole.prompts.size(); ++i)
        engine::require_any_possible_run(model, whole.prompts[i], plans_left(whole, i));
    std::error_code error;
    const bool is_begun = std::filesystem::exists(trace::part_folder_of(job.output), error);
    const auto found = trace::check_output_state(job.output, whole.recipe, whole.options);
    const bool is_extension = found == trace::OutputState::resumable && !is_begun;
    if (found != trace::OutputState::absent && !is_extension)
        return;  // an existing trace shows that the memory suffices
    const size_t longest_list = whole.n_prompts_there < whole.prompts.size() ? whole.n_prompts_there : 0;
    engine::require_memory(model, whole.prompts, plans_left(whole, longest_list), job.experiment,
                           "use a shorter prompt, fewer policies and budgets, or --isolated");
}

RunOutcome run_job(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model,
                   engine::Progress& progress, const RunEvents& events) {
    const Whole whole = whole_of(job, plans, model);
    const auto& prompts = whole.prompts;
    if (events.on_prompts) events.on_prompts(prompts);
    for (const auto& remark : engine::remarks_on_tokens(model, prompts, job.experiment.parse_special))
        warn(events, progress, remark);
    bool is_begun = false;  // whether the trace is new and has no results yet
    Failures failures(whole.plans, events, progress);
    try {
        trace::Writer writer(job.output, whole.recipe, whole.options);
        is_begun = !writer.resumed();
        if (writer.extends())
            progress.message(fmt::format("extending {}: it already contains {} of {} prompts, with {} of {} runs each",
                                         job.output.string(), whole.n_prompts_there, prompts.size(),
                                         whole.n_plans_there, whole.plans.size()));
        if (writer.resumed()) progress.message(fmt::format("resuming {}", job.output.string()));
        for (const auto& damaged : writer.set_aside()) warn(events, progress, damaged);
        if (!writer.has_model()) write_model(writer, model, false, progress);
        engine::Experiment experiment(model, whole.plans, job.experiment, writer, progress);
        if (events.on_begin) events.on_begin(experiment);
        const auto on_run = std::move(experiment.on_run);
        experiment.on_run = [&](int prompt, int number, const trace::RunRecord& record) {
            is_begun = false;
            failures.tell(prompt, number, prompts[static_cast<size_t>(prompt)].name, record);
            if (on_run) on_run(prompt, number, record);
        };
        try {
            experiment.run(prompts);
        } catch (...) {
            if (events.on_end) events.on_end(experiment);
            throw;
        }
        if (events.on_end) events.on_end(experiment);
        if (job.experiment.analyze && !writer.extends()) write_model(writer, model, true, progress);
        writer.finish();
        progress.message(fmt::format("{} written", job.output.string()));
        return {false, failures.tell_all(trace::Reader(job.output)), experiment.timings()};
    } catch (const trace::AlreadyComplete&) {
        progress.message(fmt::format("{} already contains all requested runs: nothing to do", job.output.string()));
        return {true, failures.tell_all(trace::Reader(job.output)), {}};
    } catch (const std::invalid_argument&) {
        if (is_begun) remove_part_folder_without_results(job.output);
        throw;
    }
}

}  // namespace kvscope::program
