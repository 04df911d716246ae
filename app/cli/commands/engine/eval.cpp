#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "analysis/task_scores.h"
#include "app/cli/command.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/output_option.h"
#include "app/program/engine/run_job.h"
#include "app/program/paths.h"
#include "app/program/version.h"
#include "engine/device.h"
#include "engine/error.h"
#include "engine/evaluate.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

struct Arguments {
    program::RunJob job;
    engine::NeedleTask task;
    std::string tasks = "niah";
    std::filesystem::path haystack;
    std::string dtype = "auto";
    std::string query_aware = "on";
    OutputFormat format;
    bool quiet = false;
};

void show(const Arguments& arguments, const trace::Reader& reader) {
    const auto rows = reader.results(arguments.tasks);
    const bool for_people =
        arguments.format.is_text() || arguments.format.name() == "md" || arguments.format.name() == "tex";
    arguments.format.print(for_people ? analysis::task_scores_by_budget(rows) : analysis::task_scores(rows));
    if (!arguments.format.is_text() && arguments.format.name() != "md") return;
    std::string below = "\n";
    for (const auto& failure : analysis::task_failures(rows)) below += failure + "\n";
    if (below.size() > 1) below += "\n";
    print(below + analysis::task_verdict(rows) + "\n");
}

/// Tells of each failure of a plan's runs when it is met first, also where progress is not shown.
class FailuresOnTheWay {
 public:
    FailuresOnTheWay(std::span<const engine::RunPlan> plans, bool quiet, engine::Progress& progress)
        : plans_(plans), quiet_(quiet), progress_(progress) {}

    void tell(const std::string& sample, std::span<const trace::ResultRow> rows) {
        for (size_t i = 0; i < rows.size(); ++i) {
            if (rows[i].status == "complete" || !told_.emplace(i, rows[i].status).second) continue;
            const std::string text = fmt::format("{}, {} {}", sample, plans_[i].label(), rows[i].status);
            if (quiet_) {
                fmt::print(stderr, "{}\n", text);
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

int act(Arguments& arguments) {
    auto& job = arguments.job;
    const auto plans = program::plans_of(job);
    auto& task = arguments.task;
    if (!arguments.haystack.empty()) task.haystack = program::read_text(arguments.haystack);
    task.prompt.query_aware = arguments.query_aware == "on";
    task.prompt.n_new = job.experiment.n_new;
    job.experiment.compare = false;
    job.experiment.record = false;
    TerminalProgress progress(arguments.quiet);
    const auto model = engine::Model::open(job.model.empty() ? program::default_model() : job.model,
                                           engine::dtype_from_name(arguments.dtype), progress);
    const auto samples = engine::needle_samples(model, task);
    std::vector<engine::Prompt> prompts;
    for (const auto& sample : samples) prompts.push_back(sample.prompt);
    auto recipe = nlohmann::ordered_json::parse(engine::recipe_json(model, prompts, plans, job.experiment));
    recipe["task"] = arguments.tasks;
    FailuresOnTheWay failures(plans, arguments.quiet, progress);
    try {
        trace::Writer writer(job.output, recipe.dump(), {job.force, fmt::format("kvscope {}", program::version())});
        if (writer.resumed()) progress.message(fmt::format("resuming {}", job.output.string()));
        engine::evaluate(
            model, arguments.tasks, samples, plans, job.experiment, writer, progress,
            [&](size_t i, std::span<const trace::ResultRow> rows) {
                failures.tell(samples[i].id, rows);
                const auto right =
                    std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.score > 0.5; });
                progress.message(fmt::format("{}/{} {}: full {}, {} of {} runs right, {:.1f} s", i + 1, samples.size(),
                                             samples[i].id, rows[0].score > 0.5 ? "right" : "wrong", right, rows.size(),
                                             rows[0].seconds * static_cast<double>(rows.size())));
            });
        writer.finish();
    } catch (const trace::AlreadyComplete&) {
        progress.message(fmt::format("{} holds these very results already", job.output.string()));
    } catch (const engine::Cancelled&) {
        throw std::runtime_error(fmt::format(
            "stopped; what was finished is in {}.part, and the same command goes on from there", job.output.string()));
    }
    show(arguments, trace::Reader(job.output));
    return 0;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    auto& job = arguments->job;
    auto& task = arguments->task;
    job.experiment.n_new = 24;
    app.add_option("-m,--model", job.model,
                   "GGUF file or Hugging Face directory (default: the model that comes along)");
    app.add_option("--tasks", arguments->tasks, "niah: a needle in a haystack, as RULER has it")
        ->check(CLI::IsMember({"niah"}))
        ->capture_default_str();
    app.add_option("--policy", job.policies, "A policy with its parameters; repeatable")->type_name("NAME[:K=V,…]");
    app.add_option("--budget", job.budgets,
                   "Entries kept per KV head and layer: counts (64,128 or 64-512*2) or shares kept (0.2, 20%)")
        ->type_name("B[,B…]");
    app.add_option("--lengths", task.lengths, "Tokens of the contexts")->delimiter(',')->capture_default_str();
    app.add_option("--depths", task.depths, "Places of the needle, 0 to 1")->delimiter(',')->capture_default_str();
    app.add_option("--samples", task.n_seeds, "Samples for each length and depth")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--haystack", arguments->haystack, "Text whose sentences are the haystack (default: RULER's noise)")
        ->type_name("FILE");
    app.add_option("-s,--seed", task.seed, "Seed of the first sample")->capture_default_str();
    app.add_option("--query-aware", arguments->query_aware, "off: compress the context before the question is read")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
    app.add_option("-n,--n-predict,--predict", job.experiment.n_new, "Tokens to answer with at most")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("-o,--output", job.output, "The trace to write: /results/<task>")->required()->type_name("TRACE.h5");
    app.add_option("--dtype", arguments->dtype, "f32, bf16, or auto: bf16 where the processor multiplies it natively")
        ->check(CLI::IsMember({"f32", "bf16", "auto"}))
        ->capture_default_str();
    app.add_flag("--force", job.force, "Replace what is at the output");
    app.add_flag("-q,--quiet", arguments->quiet, "No progress");
    arguments->format.declare(app);
    return [arguments] { return act(*arguments); };
}

}  // namespace

Command eval_command() {
    return {"eval", "Answer a task's samples with many policies and budgets through one shared prefill each, and score",
            "  kvscope eval --tasks niah --policy snapkv --policy random --budget 64,128 -o niah.h5\n"
            "  kvscope eval --lengths 1000,4000 --samples 5 --policy dapq --budget 64-512*2 --format md -o niah.h5",
            declare};
}

}  // namespace kvscope::cli
