#include <memory>
#include <string>

#include "app/cli/command.h"
#include "app/cli/engine/run_in_terminal.h"
#include "app/cli/engine/task_flags.h"
#include "app/cli/option_validators.h"
#include "common/whole_file.h"

namespace kvscope::cli::profile_heads_file {
namespace {

struct Arguments {
    program::RunJob job;
    TerminalOptions terminal;
    std::string measure = "r2";
    TaskFlags needles;
};

int act(Arguments& arguments) {
    auto& job = arguments.job;
    if (!job.force) refuse_existing(job.output);
    job.profile = arguments.measure == "r" ? engine::HeadMeasure::retrieval : engine::HeadMeasure::reasoning;
    arguments.terminal.model.copy_to(job.experiment);
    job.experiment.n_new = arguments.needles.n_new(*job.task);
    return run_with_progress(job, arguments.terminal).n_failed;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    arguments->terminal.model.declare(app, ModelOptions::As::both);
    app.add_option("-o,--output", arguments->job.output, "Head-importance file to write")
        ->required()
        ->check(NewFile())
        ->type_name("FILE.json");
    app.add_option("--measure", arguments->measure,
                   "Importance measure: r rates how a head copies the needle, r2 how it attends to a needle that needs "
                   "reasoning")
        ->transform(OneOf({"r", "r2"}))
        ->capture_default_str();
    auto task = engine::head_profile_task();
    std::erase_if(task.parameters, [](const auto& one) { return one.name == "needle"; });  // --measure sets this option
    arguments->needles.declare(app, {&task, 1});
    app.parse_complete_callback([arguments] {
        const engine::Task& of_profile = engine::head_profile_task();
        program::set_task(arguments->job, of_profile,
                          arguments->needles.read(of_profile, policies::ParameterValues(of_profile.parameters)));
    });
    app.add_flag("--force", arguments->job.force, "Replace an existing output");
    app.add_flag("-q,--quiet", arguments->terminal.quiet, "Hide progress");
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::profile_heads_file

namespace kvscope::cli {

Command profile_heads_command() {
    using namespace profile_heads_file;
    return {"profile-heads", "Measure each head's importance for finding a needle, for the policy headkv",
            "  kvscope profile-heads -o heads.json\n"
            "  kvscope run -f report.txt --question Who? --policy headkv:importance=heads.json --budget 128 -o r.h5",
            declare};
}

}  // namespace kvscope::cli
