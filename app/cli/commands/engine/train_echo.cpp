#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "app/cli/command.h"
#include "app/cli/engine/model_options.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/option_checks.h"
#include "app/figures/output_file.h"
#include "app/program/paths.h"
#include "engine/echo_training.h"
#include "engine/echo_tuning.h"
#include "engine/error.h"
#include "engine/prompt.h"

namespace kvscope::cli::train_echo_file {
namespace {

struct Arguments {
    ModelOptions model;
    std::filesystem::path output;
    std::vector<std::filesystem::path> texts;
    engine::EchoTrainingOptions options;
    int64_t n_tokens = 0;  ///< 0: all
    double held_out = 0.05;
    engine::EchoTuningOptions tuning{.steps = 0};
    bool force = false;
    bool quiet = false;
};

std::vector<int32_t> tokens_of(const engine::Model& model, std::vector<std::filesystem::path> texts) {
    if (texts.empty()) texts.push_back(program::asset("training/english.txt"));
    std::vector<int32_t> ids;
    for (const auto& path : texts) {
        const std::string text = program::read_text(path);
        engine::require_utf8(text, program::name_of_text(path));
        const auto of_text = model.tokenizer().encode(text, false, false);
        ids.insert(ids.end(), of_text.begin(), of_text.end());
    }
    return ids;
}

struct MeanError {
    double keys = 0, values = 0;
};

MeanError mean_of(const std::map<int, engine::EchoError>& errors) {
    MeanError mean;
    for (const auto& [layer, error] : errors) {
        mean.keys += error.keys / static_cast<double>(errors.size());
        mean.values += error.values / static_cast<double>(errors.size());
    }
    return mean;
}

std::string told(const char* what, const std::map<int, engine::EchoError>& errors) {
    const auto mean = mean_of(errors);
    return fmt::format(
        "{}: the maps miss {:.1f} % of the keys they rebuild and {:.1f} % of the values, mean over {} layers", what,
        100.0 * mean.keys, 100.0 * mean.values, errors.size());
}

void tune(const engine::Model& model, policies::EchoMaps& maps, std::span<const int32_t> ids,
          engine::EchoTuningOptions options, TerminalProgress& progress) {
    if (options.steps == 0) return;
    options.sequence = std::min(options.sequence, model.transformer().config().context_length);
    const auto losses = engine::tune_echo(model, maps, ids, options, progress);
    const size_t some = std::min<size_t>(losses.size(), 10);
    const auto mean = [&](auto first) {
        return std::accumulate(first, first + static_cast<std::ptrdiff_t>(some), 0.0) / static_cast<double>(some);
    };
    progress.message(fmt::format(
        "tuned in {} steps: attention's outputs were off by {:.1f} % in the first {}, by {:.1f} % in the last",
        losses.size(), 100.0 * mean(losses.begin()), some,
        100.0 * mean(losses.end() - static_cast<std::ptrdiff_t>(some))));
}

void train(Arguments& arguments, TerminalProgress& progress) {
    const auto model = arguments.model.open(progress);
    const int64_t context = model.transformer().config().context_length;
    arguments.options.sequence = std::min(arguments.options.sequence, context);
    auto ids = tokens_of(model, arguments.texts);
    if (arguments.n_tokens > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(arguments.n_tokens)));
    const auto n_held = static_cast<size_t>(arguments.held_out * static_cast<double>(ids.size()));
    const std::span<const int32_t> all(ids);
    const auto text = all.first(ids.size() - n_held);
    arguments.tuning.sequence = std::min({arguments.tuning.sequence, arguments.options.sequence, context});
    if (arguments.tuning.steps > 0 && static_cast<int64_t>(text.size()) < arguments.tuning.sequence)
        throw engine::UsageError(fmt::format("the text has {} tokens, a step of --tune reads {}: give a longer text",
                                             text.size(), arguments.tuning.sequence));
    auto training = engine::train_echo(model, text, arguments.options, progress);
    const auto& layout = training.maps.layout;
    progress.message(told(fmt::format("On the {} tokens of the text", training.n_tokens).c_str(), training.errors));
    tune(model, training.maps, text, arguments.tuning, progress);
    figures::write_whole_file(arguments.output, policies::to_safetensors(training.maps), arguments.force);
    std::error_code error;
    std::filesystem::remove(arguments.options.state, error);  // left behind, it is gone on with or written over
    progress.message(fmt::format(
        "{} written: groups of {} layers, of which all but the first store {} of {} numbers; "
        "the cache needs {:.1f} % of its bytes, and those of the tokens that stay exact",
        arguments.output.string(), layout.group, layout.local, layout.width(), 100.0 * layout.model_ratio()));
    if (n_held <= static_cast<size_t>(arguments.options.skipped)) return;
    const auto held_out = engine::echo_errors(model, training.maps, all.last(n_held), arguments.options, progress);
    progress.message(told(fmt::format("On the {} held out", n_held).c_str(), held_out));
}

int act(Arguments& arguments) {
    if (!arguments.force) figures::refuse_existing(arguments.output);
    arguments.options.state = arguments.output.string() + ".moments";
    TerminalProgress progress(arguments.quiet,
                              "stopped; the same command goes on from what was read by the last minute");
    try {
        train(arguments, progress);
    } catch (const engine::Cancelled&) {
        throw std::runtime_error(std::filesystem::exists(arguments.options.state)
                                     ? "stopped; the same command goes on behind what was read, and tunes anew"
                                     : "stopped");
    }
    return 0;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    auto& options = arguments->options;
    arguments->model.declare_model(app, ModelOptions::As::option);
    arguments->model.declare_dtype(app);
    arguments->model.declare_threads(app);
    app.add_option("texts", arguments->texts, "Texts to train on (default: one of English prose that comes along)")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    app.add_option("-o,--output", arguments->output, "The file of maps to write")
        ->required()
        ->check(NewFile())
        ->type_name("FILE.safetensors");
    app.add_option("--ratio", options.ratio, "Share of the full cache's bytes that is left; the nearest one is taken")
        ->check(RealNumber(0, 1))
        ->capture_default_str();
    app.add_option("--tokens", arguments->n_tokens, "Tokens of the texts that are read at most; 0: all")
        ->check(WholeNumber(0))
        ->capture_default_str();
    app.add_option("--sequence", options.sequence, "Tokens that are read at a time; at most the model's context")
        ->check(WholeNumber(8))
        ->capture_default_str();
    app.add_option("--ridge", options.ridge, "Times the inputs' mean square: what is added to each input's own")
        ->check(RealNumber(0, 1e6))
        ->capture_default_str();
    app.add_option(
           "--tune", arguments->tuning.steps,
           "Steps of gradient descent behind the least squares, on what attention gives (the paper's second stage "
           "has 1000); begins anew where it was stopped; 0: none")
        ->check(WholeNumber(0))
        ->capture_default_str();
    app.add_option("--held-out", arguments->held_out, "Share of the text, its end, that the maps are only measured on")
        ->check(RealNumber(0, 0.9))
        ->capture_default_str();
    app.add_flag("--force", arguments->force, "Replace what is at the output");
    app.add_flag("-q,--quiet", arguments->quiet, "No progress");
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::train_echo_file

namespace kvscope::cli {

Command train_echo_command() {
    using namespace train_echo_file;
    return {"train-echo", "Train the maps by which the policy echokv rebuilds keys and values",
            "  kvscope train-echo --ratio 0.5 -o echo.safetensors\n"
            "  kvscope run -f report.txt --question Who? --policy echokv:maps=echo.safetensors -o r.h5",
            declare};
}

}  // namespace kvscope::cli
