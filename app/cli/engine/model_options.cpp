#include "app/cli/engine/model_options.h"

#include "app/cli/engine/declare_run_options.h"
#include "app/cli/option_validators.h"
#include "app/program/find_model.h"
#include "engine/model/device_selection.h"
#include "kernels/threads/team.h"

namespace kvscope::cli {

CLI::Option* ModelOptions::declare_model(CLI::App& app, As model) {
    const char* names[] = {"-m,--model", "model", "model,-m,--model"};
    return app
        .add_option(
            names[static_cast<int>(model)], model_,
            "GGUF file, Hugging Face directory, or id of a model in the local hub cache (default: the installed model)")
        ->type_name("MODEL");
}

CLI::Option* ModelOptions::declare_dtype(CLI::App& app) {
    return declare_run_option(app, &engine::RunOptions::dtype, dtype_);
}

CLI::Option* ModelOptions::declare_device(CLI::App& app) {
    return suggest(declare_run_option(app, &engine::RunOptions::device, device_), {"auto", "cpu", "cuda"});
}

CLI::Option* ModelOptions::declare_threads(CLI::App& app) {
    return app.add_option("-t,--threads", threads_, "Number of threads (default: one per core)")
        ->check(WholeNumber(1, kernels::most_threads));
}

std::vector<CLI::Option*> ModelOptions::declare_chat_template(CLI::App& app) {
    std::vector<CLI::Option*> options = {
        app.add_option(
               "--chat-template", chat_template_,
               "Use the model's chat template; of --chat-template, --apply-chat-template and --no-template, the "
               "last one counts")
            ->transform(OneOf({"on", "off"}))
            ->capture_default_str(),
        app.add_flag_callback(
            "--apply-chat-template", [this] { chat_template_ = "on"; }, "Same as --chat-template on"),
        app.add_flag_callback(
            "--no-template", [this] { chat_template_ = "off"; }, "Same as --chat-template off")};
    // Handle these options in the order of the command line, so that the last one counts.
    for (CLI::Option* option : options) option->trigger_on_parse();
    return options;
}

CLI::Option* ModelOptions::declare_special(CLI::App& app) {
    const engine::RunOption& option = engine::run_option(&engine::RunOptions::parse_special);
    return app.add_flag(option.flags, parse_special_, option.help);
}

std::vector<CLI::Option*> ModelOptions::declare(CLI::App& app, As model) {
    declare_model(app, model);
    std::vector<CLI::Option*> options = declare_chat_template(app);
    options.push_back(declare_special(app));
    options.push_back(declare_dtype(app));
    options.push_back(declare_device(app));
    options.push_back(declare_threads(app));
    return options;
}

std::filesystem::path ModelOptions::path() const { return program::find_model(model_); }

void ModelOptions::copy_to(engine::RunOptions& options) const {
    options.use_template = use_template();
    options.parse_special = parse_special();
    options.dtype = dtype_;
    options.device = device_;
}

void ModelOptions::set_threads() const {
    if (threads_ > 0) kernels::set_threads(threads_);
}

engine::Model ModelOptions::open(engine::Progress& progress,
                                 const std::function<void(const engine::Model&)>& before_weights) const {
    set_threads();
    const std::filesystem::path model = path();
    const engine::ComputeDevice on = engine::open_device_for_model(device_, model, dtype_, progress);
    return engine::Model::open(model, engine::dtype_from_name(dtype_, on), progress, on, before_weights);
}

}  // namespace kvscope::cli
