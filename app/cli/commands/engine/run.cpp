#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

#include "app/cli/command.h"
#include "app/cli/engine/run_in_terminal.h"
#include "app/cli/option_checks.h"
#include "app/program/paths.h"

namespace kvscope::cli::run_file {
namespace {

struct Arguments {
    program::RunJob job;
    TerminalOptions terminal;
    std::string prompt;
    std::string prompt_name = "prompt";
    std::vector<std::string> prompt_files;
    std::vector<std::string> questions;
    std::string query_aware = "on";
    uint64_t seed = 0;
    std::optional<uint64_t> sampling_seed;
};

bool is_on(const std::string& value) { return value == "on"; }

int act(Arguments& arguments) {
    auto& job = arguments.job;
    if (!arguments.prompt.empty())
        job.prompts.push_back({arguments.prompt_name, arguments.prompt, arguments.questions, "-p"});
    for (const auto& file : arguments.prompt_files)
        job.prompts.push_back({std::filesystem::path(file).stem().string(), program::read_text(file),
                               arguments.questions, program::name_of_text(file)});
    if (job.prompts.empty() && job.prompt_from.empty())
        throw std::invalid_argument("there is no prompt: give a text with -p or a file with -f");
    job.query_aware = is_on(arguments.query_aware);
    job.use_template = arguments.terminal.model.use_template();
    job.experiment.seed = arguments.seed;
    job.experiment.sampling.seed = arguments.sampling_seed.value_or(arguments.seed);
    return run_in_terminal(job, arguments.terminal);
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    auto& job = arguments->job;
    auto& experiment = job.experiment;
    auto& terminal = arguments->terminal;
    terminal.model.declare(app);
    app.add_option("-p,--prompt", arguments->prompt, "Text of the prompt")->type_name("TEXT");
    app.add_option("--prompt-name", arguments->prompt_name, "What that text is called in the trace")
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("-f,--prompt-file,--file", arguments->prompt_files,
                   "File with the prompt, - for standard input; repeatable")
        ->type_name("FILE");
    app.add_option("--question", arguments->questions, "Question asked of the prompt; repeatable")
        ->type_name("TEXT")
        ->allow_extra_args(false);  // else "[a, b]" would be two
    app.add_option("--query-aware", arguments->query_aware,
                   "off: compress the context before the question is read; several questions then share one cache")
        ->transform(OneOf({"on", "off"}))
        ->capture_default_str();
    auto* prompt_from =
        app.add_option(
               "--prompt-from", job.prompt_from,
               "A trace's prompts with their questions and token ids, by number (0): the same run on other policies")
            ->type_name("TRACE.h5[:PROMPT[,PROMPT…]]");
    for (const char* other : {"-p", "-f", "--question", "--query-aware"}) prompt_from->excludes(app.get_option(other));
    app.add_option("--policy", job.policies,
                   "A policy with its parameters, as in aperturekv:lambda=0,window=8; repeatable")
        ->type_name("NAME[:K=V,…]");
    app.add_option(
           "--budget", job.budgets,
           "Entries kept per KV head and layer: counts (64,128 or 64-512*2) or shares kept (0.2, 20%); the share "
           "of bytes for policies that keep every token")
        ->type_name("B[,B…]");
    app.add_option("-n,--n-predict,--predict", experiment.n_new, "Tokens to generate")
        ->check(WholeNumber(1))
        ->capture_default_str();
    app.add_flag("--ignore-eos", experiment.ignore_eos, "Generate all of them, also behind an end-of-text token");
    app.add_option("-o,--output", job.output, "The trace to write")->required()->type_name("TRACE.h5");
    app.add_option("--device", terminal.device, "cpu or cuda")
        ->transform(OneOf({"cpu", "cuda"}))
        ->capture_default_str();
    app.add_flag("--isolated", experiment.isolated, "One run at a time, as a server would: honest memory and speed");
    app.add_option("--temp", experiment.sampling.temperature, "Temperature; 0 is greedy")->capture_default_str();
    app.add_option("--top-p", experiment.sampling.top_p, "Share of the probability that is drawn from")
        ->capture_default_str();
    app.add_option("-s,--seed", arguments->seed, "Seed of whatever draws")->capture_default_str();
    app.add_option("--sampling-seed", arguments->sampling_seed, "Seed of the answers alone (default: that of --seed)");
    app.add_option("--window", experiment.window, "Last queries whose attention is recorded of the full cache")
        ->check(WholeNumber(1, std::numeric_limits<int>::max()))
        ->capture_default_str();
    app.add_flag("--analyze", job.analyze, "Also the spectra of the projections");
    app.add_flag("!--no-compare", experiment.compare, "Leave out step_kl, step_agreement and output_error");
    auto* no_record = app.add_flag("!--no-record", experiment.record, "Leave out the measures of the full cache");
    app.add_flag("--alignment", experiment.alignment,
                 "Also how each head's c11, c12 and c22 lie to the loss's gradient, of the prompt's first 2,048 tokens "
                 "(KVSlimmer, Figure 3): a second pass, with gradients")
        ->excludes(no_record);
    app.add_option("--timings", terminal.timings, "Write the seconds of each phase to this file")
        ->check(NewFile())
        ->type_name("FILE.json");
    app.add_flag("--force", job.force, "Replace what is at the output");
    app.add_flag("-q,--quiet", terminal.quiet, "No progress");
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::run_file

namespace kvscope::cli {

Command run_command() {
    using namespace run_file;
    return {
        "run", "Prefill once, compress with many policies, decode all of them, write one trace",
        "  kvscope run -f report.txt --question \"Who signed it?\" --policy snapkv --policy aperturekv --budget 64,128 "
        "-n 64 -o report.h5\n"
        "  kvscope run -f report.txt --question Who? --question When? --query-aware off --policy h2o --budget 10% -o "
        "q.h5",
        declare};
}

}  // namespace kvscope::cli
