#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include "app/cli/command.h"
#include "app/cli/engine/declare_run_options.h"
#include "app/cli/engine/predict_job.h"
#include "app/cli/engine/run_in_terminal.h"
#include "app/cli/engine/shard_option.h"
#include "app/cli/option_validators.h"
#include "app/cli/terminal.h"
#include "app/program/engine/prompt_sources.h"

namespace kvscope::cli::run_file {
namespace {

struct Arguments {
    program::RunJob job;
    TerminalOptions terminal;
    std::string prompt;
    std::string prompt_name = "prompt";
    std::vector<std::string> sources;
    std::vector<std::string> questions;
    std::string shard;
    std::filesystem::path prediction;
};

int act(Arguments& arguments) {
    auto& job = arguments.job;
    set_shard(job, arguments.shard);
    const std::vector<std::filesystem::path> sources(arguments.sources.begin(), arguments.sources.end());
    auto [prompts, problems] =
        program::find_prompts({arguments.prompt_name, arguments.prompt, arguments.questions, "-p"}, sources);
    if (prompts.empty() && !problems.empty()) throw std::invalid_argument(problems.front());
    for (const std::string& problem : problems) print_to_stderr(problem + ". It is left out");
    job.prompts = std::move(prompts);
    if (job.prompts.empty() && job.prompt_from.empty())
        throw std::invalid_argument("no prompt: give a text with -p, or a text file, a JSONL file or a folder with -f");
    arguments.terminal.model.copy_to(job.experiment);
    if (!arguments.prediction.empty()) return predict_job(job, arguments.terminal, arguments.prediction);
    arguments.terminal.n_unusable = problems.size();
    return run_in_terminal(job, arguments.terminal);
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    auto& job = arguments->job;
    auto& terminal = arguments->terminal;
    terminal.model.declare(app);
    app.add_option("-p,--prompt", arguments->prompt, "Text of the prompt")->type_name("TEXT");
    app.add_option("--prompt-name", arguments->prompt_name, "Name in the trace of the prompt given by -p")
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option(
           "prompts,-f,--prompt-file,--file", arguments->sources,
           "Text file, folder of text files, or JSONL file with a \"context\" and optionally a \"question\" and "
           "\"answers\" per line; - for standard input; repeatable")
        ->type_name("FILE|FOLDER");
    app.add_option("--question", arguments->questions,
                   "Question after each prompt that has no question of its own; repeatable")
        ->type_name("TEXT")
        ->allow_extra_args(false);  // otherwise CLI11 splits "[a, b]" in two
    declare_policy_and_budget_options(app, job);
    declare_run_options(app, job.experiment);
    app.get_option("--alignment")->excludes(app.get_option("--no-record"));
    auto* prompt_from =
        app.add_option(
               "--prompt-from", job.prompt_from,
               "Reuse the prompts with these numbers (default: 0) of a trace, with their questions and token ids, or "
               "the sample with this name of a task")
            ->type_name("TRACE.h5[:PROMPT[,PROMPT…]|:SAMPLE]");
    for (const char* other : {"-p", "-f", "--question", "--query-aware"}) prompt_from->excludes(app.get_option(other));
    app.add_option("-o,--output", job.output, "Trace to write; missing runs and prompts are added to an existing trace")
        ->required()
        ->type_name("TRACE.h5");
    declare_shard_option(app, arguments->shard, "prompts");
    declare_prediction(app, arguments->prediction);
    declare_outcome(app, terminal);
    app.add_option("--timings", terminal.timings, "JSON file for the seconds that each phase takes")
        ->check(NewFile())
        ->type_name("FILE.json");
    declare_disk_limit(app, job);
    app.add_flag("--force", job.force, "Replace an existing output");
    app.add_flag("-q,--quiet", terminal.quiet, "Hide progress, table and answers");
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::run_file

namespace kvscope::cli {

Command run_command() {
    using namespace run_file;
    return {
        "run", "Prefill a prompt once, compress its cache with many policies, decode all runs and write a trace",
        "  kvscope run -f report.txt --question \"Who signed it?\" --policy snapkv --policy aperturekv --budget 64,128 "
        "-n 64 -o report.h5\n"
        "  kvscope run -f report.txt --question Who? --question When? --query-aware off --policy h2o --budget 10% -o "
        "q.h5",
        declare};
}

}  // namespace kvscope::cli
