#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <stdexcept>

#include "app/cli/command.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/program/paths.h"
#include "engine/device.h"
#include "engine/head_profile.h"

namespace kvscope::cli {
namespace {

struct Arguments {
    std::filesystem::path model;
    std::filesystem::path output;
    std::filesystem::path haystack;
    std::string measure = "r2";
    std::string dtype = "auto";
    engine::HeadProfileOptions options;
    bool force = false;
    bool quiet = false;
};

int act(Arguments& arguments) {
    if (std::filesystem::exists(arguments.output) && !arguments.force)
        throw std::invalid_argument(arguments.output.string() +
                                    " is there already; give another name, or --force to replace it");
    auto& options = arguments.options;
    options.measure = arguments.measure == "r" ? engine::HeadMeasure::retrieval : engine::HeadMeasure::reasoning;
    if (!arguments.haystack.empty()) options.haystack = program::read_text(arguments.haystack);
    TerminalProgress progress(arguments.quiet);
    const auto dtype = engine::dtype_from_name(arguments.dtype);
    const auto model =
        engine::Model::open(arguments.model.empty() ? program::default_model() : arguments.model, dtype, progress);
    const auto profile = engine::profile_heads(model, options, progress);
    std::ofstream file(arguments.output, std::ios::binary);
    file << engine::to_json(profile, model.transformer().shape());
    file.close();
    if (!file) throw std::runtime_error(arguments.output.string() + " cannot be written");
    progress.message(fmt::format("{} written: {} of {} prompts were answered right and counted",
                                 arguments.output.string(), profile.n_right, profile.n_prompts));
    return 0;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    auto& options = arguments->options;
    app.add_option("model,-m,--model", arguments->model,
                   "GGUF file or Hugging Face directory (default: the model that comes along)");
    app.add_option("-o,--output", arguments->output, "The head-importance file to write")
        ->required()
        ->type_name("FILE.json");
    app.add_option("--measure", arguments->measure,
                   "r: copying of the needle; r2: attention to it, the needle holding a step of reasoning")
        ->check(CLI::IsMember({"r", "r2"}))
        ->capture_default_str();
    app.add_option("--lengths", options.lengths, "Tokens of the contexts")->delimiter(',')->capture_default_str();
    app.add_option("--depths", options.depths, "Places of the needle, 0 to 1")->delimiter(',')->capture_default_str();
    app.add_option("--samples", options.n_seeds, "Prompts for each length and depth")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("-n,--n-predict,--predict", options.n_new, "Tokens to answer with at most")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--haystack", arguments->haystack, "Text whose sentences are the haystack (default: RULER's noise)")
        ->type_name("FILE");
    app.add_option("--dtype", arguments->dtype, "f32, bf16, or auto: bf16 where the processor multiplies it natively")
        ->check(CLI::IsMember({"f32", "bf16", "auto"}))
        ->capture_default_str();
    app.add_flag("--force", arguments->force, "Replace what is at the output");
    app.add_flag("-q,--quiet", arguments->quiet, "No progress");
    return [arguments] { return act(*arguments); };
}

}  // namespace

Command profile_heads_command() {
    return {"profile-heads", "Measure how important each head is for finding a needle, for the policy headkv",
            "  kvscope profile-heads -o heads.json\n"
            "  kvscope run -f report.txt --question Who? --policy headkv:importance=heads.json --budget 128 -o r.h5",
            declare};
}

}  // namespace kvscope::cli
