#include "app/program/engine/run_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "app/program/input_files.h"
#include "engine/prefill/prompt.h"
#include "policies/api/budget.h"
#include "policies/registry/feasibility.h"
#include "policies/registry/same_window.h"

namespace kvscope::program {

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

void set_task(RunJob& job, const engine::Task& task, policies::ParameterValues values) {
    job.task = &task;
    job.task_values = std::move(values);
    job.experiment.compare = false;
    job.experiment.record = false;
    job.experiment.isolated = task.measures_time;
    job.experiment.ignore_eos = task.measures_time;
}

namespace {

constexpr size_t largest_benchmark_file = size_t{1} << 32;  ///< in bytes; 175 books of 2 million tokens (InfiniteBench)

std::string read_utf8_text(const std::filesystem::path& path, const std::string& shown, size_t largest) {
    std::string text = read_text(path, largest);
    engine::require_utf8(text, shown);
    return text;
}

}  // namespace

engine::TaskOptions read_task_files(const engine::Task& task, policies::ParameterValues values) {
    engine::TaskOptions options{std::move(values)};
    for (const policies::Parameter& parameter : options.values.declared()) {
        if (parameter.kind != policies::ParameterKind::file) continue;
        const std::string path = options.values.text(parameter.name);
        if (path.empty()) continue;
        const std::string shown = display_name_of_input(path);
        const size_t largest = task.needs_file ? largest_benchmark_file : largest_prompt;
        std::error_code error;
        const std::string_view ending = task.ending_in_folder(parameter.name);
        if (!ending.empty() && std::filesystem::is_directory(path, error)) {
            for (const auto& entry : std::filesystem::directory_iterator(path))
                if (entry.path().extension() == ending)
                    options.files[parameter.name + "/" + entry.path().filename().string()] =
                        read_utf8_text(entry.path(), entry.path().string(), largest);
        } else {
            options.files[parameter.name] = read_utf8_text(path, shown, largest);
        }
        options.values.set(parameter.name, shown);  // for messages
    }
    for (const std::string& asset : task.assets) options.files[asset] = read_text(asset_path(asset));
    return options;
}

namespace {

/// Refuses a policy without its file before the model is loaded, because all runs of the policy would fail.
void require_file(const policies::PolicySpec& spec) {
    const policies::Parameter* file = policies::find_file_parameter(spec);
    if (file && spec.values.text(file->name).empty())
        throw std::invalid_argument(fmt::format("--policy {0} needs the parameter {1}, as in {0}:{1}=PATH. {1}: {2}",
                                                spec.definition->name, file->name, file->help));
}

std::vector<policies::Budget> budgets_of(const RunJob& job) {
    std::vector<policies::Budget> budgets;
    for (const auto& text : job.budgets) {
        for (const auto& budget : policies::parse_budgets(text)) budgets.push_back(budget);
    }
    return budgets;
}

std::vector<policies::PolicySpec> policies_of(const RunJob& job) {
    std::vector<policies::PolicySpec> specs;
    for (const auto& list : job.policies)
        for (const auto& text : policies::split_policies(list))
            for (policies::PolicySpec& spec : policies::parse_policies(text)) {
                if (job.same_window > 0) policies::set_default_window(spec, text, job.same_window);
                specs.push_back(std::move(spec));
            }
    return specs;
}

/// Returns the plans in the order of the command, without the full run. Plans may be repeated.
std::vector<engine::RunPlan> asked_plans(const RunJob& job) {
    const std::vector<policies::Budget> budgets = budgets_of(job);
    if (job.policies.empty() && !budgets.empty())
        throw std::invalid_argument(fmt::format(
            "the budget {} needs a policy: name one with --policy. Without a policy, only the full cache is run",
            budgets.front().label()));
    std::vector<engine::RunPlan> plans;
    for (const auto& spec : policies_of(job)) {
        if (spec.definition->is_full()) continue;
        if (job.requires_files) require_file(spec);
        if (const auto share = spec.own_share()) {
            plans.push_back({spec, {.is_share = true, .share = *share}});
            continue;
        }
        if (budgets.empty())
            throw std::invalid_argument(spec.label() + " needs a budget: entries kept per KV head and layer (128), " +
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
    if (job.same_window > 0 &&
        std::ranges::none_of(plans, [](const engine::RunPlan& plan) { return plan.spec.values.has("window"); }))
        lines.push_back(
            fmt::format("--same-window {} has no effect: none of the policies has a window", job.same_window));
    const bool has_questions = std::any_of(job.prompts.begin(), job.prompts.end(),
                                           [](const PromptText& prompt) { return !prompt.questions.empty(); });
    if (!job.experiment.query_aware && !job.prompts.empty() && !has_questions)
        lines.emplace_back("--query-aware off has no effect: no prompt has a question");
    for (auto plan = plans.begin(); plan != plans.end(); ++plan) {
        const auto is_equal = [&](const engine::RunPlan& other) {
            return other.spec == plan->spec && other.budget == plan->budget;
        };
        if (std::any_of(plans.begin(), plan, is_equal)) continue;
        if (const auto n = std::count_if(plan, plans.end(), is_equal); n > 1)
            lines.push_back(fmt::format("{} is named {} times, but runs once", plan->label(), n));
    }
    return lines;
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

}  // namespace kvscope::program
