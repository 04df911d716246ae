#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "app/cli/command.h"
#include "app/cli/engine/declare_run_options.h"
#include "app/cli/engine/run_in_terminal.h"
#include "app/cli/option_validators.h"
#include "app/cli/terminal.h"
#include "app/program/input_files.h"
#include "common/utf8.h"

namespace kvscope::cli::run_file {
namespace {

struct Arguments {
    program::RunJob job;
    TerminalOptions terminal;
    std::string prompt;
    std::string prompt_name = "prompt";
    std::vector<std::string> prompt_files;
    std::vector<std::string> questions;
};

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

/// @returns the number of empty prompts, which are omitted @throws std::invalid_argument if all prompts are empty
int read_prompts(const Arguments& arguments, std::vector<program::PromptText>& prompts) {
    if (!arguments.prompt.empty())
        prompts.push_back({arguments.prompt_name, arguments.prompt, arguments.questions, "-p"});
    for (const auto& file : arguments.prompt_files)
        prompts.push_back({utf8_lossy(std::filesystem::path(file).stem().string()), program::read_prompt(file),
                           arguments.questions, program::display_name_of_input(file)});
    const auto has_text = [](const program::PromptText& prompt) { return !is_blank(prompt.context); };
    if (!prompts.empty() && std::none_of(prompts.begin(), prompts.end(), has_text))
        throw std::invalid_argument(prompts.front().origin + ": the prompt is empty: give a text");
    return static_cast<int>(std::erase_if(prompts, [&](const program::PromptText& prompt) {
        if (has_text(prompt)) return false;
        print_to_stderr(prompt.origin + ": the prompt is empty and is left out. The other prompts are run");
        return true;
    }));
}

int act(Arguments& arguments) {
    auto& job = arguments.job;
    const int n_failed = read_prompts(arguments, job.prompts);
    if (job.prompts.empty() && job.prompt_from.empty())
        throw std::invalid_argument("no prompt: give a text with -p or a file with -f");
    arguments.terminal.model.copy_to(job.experiment);
    const int code = run_in_terminal(job, arguments.terminal);
    return code == 0 && n_failed > 0 ? 1 : code;
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
    app.add_option("-f,--prompt-file,--file", arguments->prompt_files, "Prompt file, - for standard input; repeatable")
        ->type_name("FILE");
    app.add_option("--question", arguments->questions, "Question after the prompt; repeatable")
        ->type_name("TEXT")
        ->allow_extra_args(false);  // otherwise CLI11 splits "[a, b]" in two
    declare_policy_and_budget_options(app, job);
    declare_run_options(app, job.experiment);
    app.get_option("--alignment")->excludes(app.get_option("--no-record"));
    auto* prompt_from =
        app.add_option(
               "--prompt-from", job.prompt_from,
               "Reuse the prompts with these numbers (default: 0) of a trace, with their questions and token ids")
            ->type_name("TRACE.h5[:PROMPT[,PROMPT…]]");
    for (const char* other : {"-p", "-f", "--question", "--query-aware"}) prompt_from->excludes(app.get_option(other));
    app.add_option("-o,--output", job.output, "Trace to write; missing runs and prompts are added to an existing trace")
        ->required()
        ->type_name("TRACE.h5");
    app.add_option("--timings", terminal.timings, "JSON file for the seconds that each phase takes")
        ->check(NewFile())
        ->type_name("FILE.json");
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
