#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "analysis/runs/task_scores.h"
#include "app/cli/command.h"
#include "app/cli/engine/declare_run_options.h"
#include "app/cli/engine/model_options.h"
#include "app/cli/engine/task_flags.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/inspect_trace.h"
#include "app/cli/option_validators.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"
#include "app/program/engine/run_job.h"
#include "app/program/version.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/run_requirements.h"
#include "engine/task_evaluation.h"
#include "engine/trace_extension.h"
#include "trace/creation_time.h"
#include "trace/part_folder.h"
#include "trace/reader.h"
#include "trace/recipe.h"

namespace kvscope::cli::eval_file {
namespace {

struct Arguments {
    program::RunJob job;
    ModelOptions model;
    std::string task = "niah";
    TaskFlags flags;
    std::string query_aware = "on";
    OutputFormat format;
    bool quiet = false;
    std::time_t now = 0;  ///< for chat templates
};

/// Prints the table of scores. Warnings follow the table. In formats for programs, warnings go to stderr.
void show(const Arguments& arguments, const trace::Reader& reader) {
    const auto rows = reader.results(arguments.task);
    const bool is_for_people = arguments.format.is_for_people();
    arguments.format.print(is_for_people ? analysis::task_scores_by_budget(rows) : analysis::task_scores(rows));
    std::string failures;
    for (const auto& failure : analysis::describe_failed_runs(rows)) failures += failure + "\n";
    if (!is_for_people || arguments.format.name() == "tex") {
        if (!failures.empty()) print_to_stderr(failures.substr(0, failures.size() - 1));
        return;
    }
    std::string text;
    for (const std::string& said :
         {describe_what_policies_saw(reader, rows), failures, analysis::describe_uncompressed_samples(rows),
          analysis::assess_task_validity(rows)})
        if (!said.empty()) text += "\n" + said + (said.ends_with('\n') ? "" : "\n");
    print(text);
}

/// Reports each failure of a plan once, even with --quiet.
class FailuresOnTheWay {
 public:
    FailuresOnTheWay(std::span<const engine::RunPlan> plans, bool quiet, engine::Progress& progress)
        : plans_(plans), quiet_(quiet), progress_(progress) {}

    void tell(const std::string& sample, std::span<const trace::ResultRow> rows) {
        for (size_t i = 0; i < rows.size(); ++i) {
            if (rows[i].status == "complete" || !told_.emplace(i, rows[i].status).second) continue;
            const std::string text = fmt::format("{}, {} {}", sample, plans_[i].asked(), rows[i].status);
            if (quiet_) {
                print_to_stderr(text);
            } else {
                progress_.message(text);
            }
        }
    }

 private:
    std::span<const engine::RunPlan> plans_;
    bool quiet_;
    engine::Progress& progress_;
    std::set<std::pair<size_t, std::string>> told_;
};

/// Returns, by sample id, the results of a complete trace that contains a part of the samples or runs.
std::map<std::string, std::vector<trace::ResultRow>> finished_samples(const Arguments& arguments,
                                                                      const trace::WriterOptions& options) {
    std::map<std::string, std::vector<trace::ResultRow>> samples;
    std::error_code error;
    if (!options.is_part_of_it || !std::filesystem::is_regular_file(arguments.job.output, error)) return samples;
    try {
        const trace::Reader reader(arguments.job.output);
        if (!reader.complete() || !options.is_part_of_it(reader.recipe_json())) return samples;
        for (auto& row : reader.results(arguments.task)) samples[row.sample_id].push_back(std::move(row));
    } catch (const trace::TraceError&) {
        // The file is not a trace, so the writer will refuse to replace it.
    }
    return samples;
}

nlohmann::ordered_json recipe_of(const Arguments& arguments, const engine::Model& model,
                                 const std::vector<engine::RunPlan>& plans,
                                 std::span<const engine::PreparedSample> samples) {
    std::vector<engine::Prompt> prompts;
    for (const auto& sample : samples) prompts.push_back(sample.prompt);
    auto recipe = nlohmann::ordered_json::parse(engine::recipe_json(model, prompts, plans, arguments.job.experiment));
    recipe["task"] = arguments.task;
    // Results are stored by sample number. With other lengths or seeds, a number means another sample.
    for (size_t i = 0; i < samples.size(); ++i) recipe["prompts"][i]["number"] = samples[i].number;
    return recipe;
}

trace::WriterOptions writer_options(const Arguments& arguments, const nlohmann::ordered_json& recipe) {
    trace::WriterOptions options{.force = arguments.job.force,
                                 .generator = fmt::format("kvscope {}", program::version()),
                                 .created = arguments.now};
    if (!options.force)
        options.is_part_of_it = [wanted = recipe.dump()](const std::string& other) {
            return trace::can_extend_recipe_to(other, wanted);
        };
    return options;
}

void check(const Arguments& arguments, const engine::Model& model, const std::vector<engine::RunPlan>& plans,
           std::span<const engine::PreparedSample> samples) {
    const auto [shortest, longest] =
        std::minmax_element(samples.begin(), samples.end(),
                            [](const auto& a, const auto& b) { return a.prompt.ids.size() < b.prompt.ids.size(); });
    const auto recipe = recipe_of(arguments, model, plans, samples);
    const auto options = writer_options(arguments, recipe);
    std::vector<engine::RunPlan> added = plans;
    const std::string there = trace::read_recipe_of_trace(arguments.job.output);
    if (!arguments.job.force && engine::recipe_lacks_token_ids(there))
        throw trace::ReplaceableOutputExists(fmt::format(
            "{} was written by an earlier version of kvscope, which tokenized context and question "
            "separately. Its answers belong to other tokens. Choose another output, or allow the file to be replaced",
            arguments.job.output.string()));
    if (options.is_part_of_it && options.is_part_of_it(there)) {
        const auto held = nlohmann::json::parse(there);
        if (samples.size() > held["prompts"].size()) engine::require_recorded_files(arguments.job.output, plans);
        const size_t n_there = held["runs"].size();
        added.erase(added.begin() + 1, added.begin() + static_cast<std::ptrdiff_t>(n_there));
    }
    engine::require_any_possible_run(model, shortest->prompt, added);
    const auto found = trace::check_output_state(arguments.job.output, recipe.dump(), options);
    if (found == trace::OutputState::absent)  // an existing output shows that the memory suffices
        engine::require_memory(model, {&longest->prompt, 1}, plans, arguments.job.experiment,
                               "use shorter --lengths, fewer policies and budgets");
}

void evaluate(const Arguments& arguments, const engine::Model& model, const std::vector<engine::RunPlan>& plans,
              std::span<const engine::PreparedSample> samples, TerminalProgress& progress) {
    const auto& job = arguments.job;
    const auto recipe = recipe_of(arguments, model, plans, samples);
    const trace::WriterOptions options = writer_options(arguments, recipe);
    const auto finished = finished_samples(arguments, options);
    trace::Writer writer(job.output, recipe.dump(), options);
    if (writer.resumed()) progress.message(fmt::format("resuming {}", job.output.string()));
    for (const auto& damaged : writer.set_aside()) progress.warning(damaged);
    if (!finished.empty())
        progress.message(fmt::format(
            "{} contains {} of {} samples, with {} of {} runs each: adding the missing samples and runs",
            job.output.string(), finished.size(), samples.size(), finished.begin()->second.size(), plans.size()));
    const auto is_done = [&](const engine::PreparedSample& sample) {
        return writer.has_results(arguments.task, sample.number) &&
               writer.results(arguments.task, sample.number).size() >= plans.size();
    };
    for (const auto& sample : samples) {
        const auto rows = finished.find(sample.id);
        if (rows != finished.end() && !writer.has_results(arguments.task, sample.number))
            writer.write_results(arguments.task, sample.number, rows->second);
    }
    std::vector<engine::Prompt> prompts;
    for (const auto& sample : samples) prompts.push_back(sample.prompt);
    for (const auto& remark : engine::remarks_on_tokens(model, prompts, arguments.model.parse_special()))
        progress.warning(remark);
    FailuresOnTheWay failures(plans, arguments.quiet, progress);
    double tokens_done = 0, seconds_done = 0;
    engine::evaluate_task(
        model, engine::task_named(arguments.task), samples, plans, job.experiment, writer, progress,
        [&](size_t i, std::span<const trace::ResultRow> rows, double seconds) {
            failures.tell(samples[i].id, rows);
            const auto right =
                std::count_if(rows.begin() + 1, rows.end(), [](const auto& row) { return row.score > 0.5; });
            tokens_done += static_cast<double>(samples[i].prompt.ids.size());
            seconds_done += seconds;
            double tokens_left = 0;
            for (size_t j = i + 1; j < samples.size(); ++j)
                if (!is_done(samples[j])) tokens_left += static_cast<double>(samples[j].prompt.ids.size());
            const std::string left = tokens_left > 0 ? fmt::format("; about {} remaining",
                                                                   clock_text(seconds_done / tokens_done * tokens_left))
                                                     : "";
            progress.message(fmt::format("{}/{} {}: full {}, {} of {} other runs correct, {:.1f} s{}", i + 1,
                                         samples.size(), samples[i].id, rows[0].score > 0.5 ? "correct" : "wrong",
                                         right, rows.size() - 1, seconds, left));
        });
    writer.finish();
}

int act(Arguments& arguments) {
    auto& job = arguments.job;
    auto plans = program::run_plans_of_job(job);
    if (!job.force)
        plans = engine::in_order_of_recipe(trace::read_recipe_of_trace(job.output),
                                           trace::read_recipe_of_trace(trace::part_folder_of(job.output)),
                                           std::move(plans));
    const auto& task = engine::task_named(arguments.task);
    const auto options = arguments.flags.read(task, policies::ParameterValues(task.parameters));
    job.experiment.n_new = arguments.flags.n_new(task);
    // The date in a chat template must not change when a trace is resumed.
    arguments.now = (job.force ? std::nullopt : trace::creation_time(job.output)).value_or(std::time(nullptr));
    const engine::PromptOptions prompt{.use_template = arguments.model.use_template(),
                                       .query_aware = arguments.query_aware == "on",
                                       .n_new = job.experiment.n_new,
                                       .parse_special = arguments.model.parse_special(),
                                       .now = arguments.now};
    job.experiment.compare = false;
    job.experiment.record = false;
    TerminalProgress progress(arguments.quiet, make_stop_message_function(job.output));
    for (const auto& line : program::settings_without_effect(job)) progress.warning(line);
    std::vector<engine::PreparedSample> samples;
    const auto model = run_unless_stopped(job.output, [&] {
        return arguments.model.open(progress, [&](const engine::Model& found) {
            samples = engine::prepare_samples(found, task, options, prompt);
            check(arguments, found, plans, samples);
        });
    });
    std::error_code error;
    const bool is_anew = !std::filesystem::exists(trace::part_folder_of(job.output), error);
    try {
        evaluate(arguments, model, plans, samples, progress);
    } catch (const std::invalid_argument&) {
        if (is_anew) program::remove_part_folder_without_results(job.output);
        throw;
    } catch (const trace::AlreadyComplete&) {
        for (const auto& failure : analysis::describe_failed_runs(trace::Reader(job.output).results(arguments.task)))
            progress.warning(failure);
        progress.message(fmt::format("{} already contains these results", job.output.string()));
    } catch (const engine::Cancelled&) {
        end_stopped(job.output);
    }
    const trace::Reader reader(job.output);
    show(arguments, reader);
    return analysis::describe_failed_runs(reader.results(arguments.task)).empty() ? 0 : 1;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    auto& job = arguments->job;
    arguments->model.declare(app);
    app.add_option("--task,--tasks", arguments->task, "Benchmark task; `kvscope tasks` describes the tasks")
        ->transform(OneOf(defined_names(engine::tasks())))
        ->capture_default_str();
    declare_policy_and_budget_options(app, job);
    arguments->flags.declare(app, engine::tasks());
    app.add_option("--query-aware", arguments->query_aware,
                   "Whether policies see the question; if off, the context is compressed before the question is read")
        ->transform(OneOf({"on", "off"}))
        ->capture_default_str();
    app.add_option("-o,--output", job.output,
                   "Trace to write, with the scores in /results/<task>; an existing trace is extended")
        ->required()
        ->type_name("TRACE.h5");
    app.add_flag("--force", job.force, "Replace an existing output");
    app.add_flag("-q,--quiet", arguments->quiet, "Hide progress");
    arguments->format.declare(app);
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::eval_file

namespace kvscope::cli {

Command eval_command() {
    using namespace eval_file;
    return {"eval", "Answer a benchmark task with many policies and budgets, and score the answers",
            "  kvscope eval --task niah --policy snapkv --policy random --budget 64,128 -o niah.h5\n"
            "  kvscope eval --task niah --policy snapkv --policy random --budget 64,128 --samples 6 -o niah.h5   # "
            "continues\n"
            "  kvscope eval --lengths 1000,4000 --samples 5 --policy dapq --budget 64-512*2 --format md -o niah.h5",
            declare};
}

}  // namespace kvscope::cli
