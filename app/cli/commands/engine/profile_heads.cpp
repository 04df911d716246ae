#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "app/cli/command.h"
#include "app/cli/engine/model_options.h"
#include "app/cli/engine/task_flags.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/option_validators.h"
#include "app/program/engine/run_job.h"
#include "common/stopped.h"
#include "common/whole_file.h"
#include "engine/head_profile.h"

namespace kvscope::cli::profile_heads_file {
namespace {

struct Arguments {
    ModelOptions model;
    std::filesystem::path output;
    std::string measure = "r2";
    TaskFlags needles;
    engine::HeadProfileOptions options;
    bool force = false;
    bool quiet = false;
};

engine::HeadProfile measured(const engine::Model& model, const engine::HeadProfileOptions& options,
                             engine::Progress& progress) {
    try {
        return engine::profile_heads(model, options, progress);
    } catch (const Stopped&) {
        throw std::runtime_error("stopped; nothing was written");
    }
}

int act(Arguments& arguments) {
    if (std::filesystem::exists(arguments.output) && !arguments.force)
        throw std::invalid_argument(arguments.output.string() +
                                    " already exists; give another name, or --force to replace it");
    auto& options = arguments.options;
    options.measure = arguments.measure == "r" ? engine::HeadMeasure::retrieval : engine::HeadMeasure::reasoning;
    options.needles = program::read_task_files(std::move(options.needles.values));
    options.n_new = arguments.needles.n_new(engine::head_profile_task());
    options.use_template = arguments.model.use_template();
    options.parse_special = arguments.model.parse_special();
    TerminalProgress progress(arguments.quiet);
    const auto model = arguments.model.open(progress);
    const auto profile = measured(model, options, progress);
    write_whole_file(arguments.output, engine::to_headkv_json(profile, model.transformer().shape()), arguments.force);
    progress.message(fmt::format("{} written: {} of {} prompts had correct answers and were counted",
                                 arguments.output.string(), profile.n_right, profile.n_prompts));
    return 0;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    arguments->model.declare(app, ModelOptions::As::both);
    app.add_option("-o,--output", arguments->output, "Head-importance file to write")
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
        auto& values = arguments->options.needles.values;
        values = arguments->needles.read(engine::head_profile_task(), values);
    });
    app.add_flag("--force", arguments->force, "Replace an existing output");
    app.add_flag("-q,--quiet", arguments->quiet, "Hide progress");
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
