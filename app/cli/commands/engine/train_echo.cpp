#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "analysis/table_format.h"
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
    std::filesystem::path output, curve;
    std::vector<std::filesystem::path> texts;
    std::string stage1 = "least-squares", tune_loss = "outputs";
    engine::EchoTrainingOptions options;
    engine::EchoTuningOptions descent{.steps = 600, .loss = engine::EchoLoss::keys_values};
    engine::EchoTuningOptions tuning{.steps = 0};
    int64_t n_tokens = 0;  ///< 0: all
    double held_out = 0.05;
    bool force = false;
    bool quiet = false;

    bool is_descent() const { return stage1 == "adamw"; }
    std::vector<std::filesystem::path> states() const {
        return {is_descent() ? descent.state : options.state, tuning.state};
    }
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

analysis::Table empty_curve() {
    using analysis::ColumnType;
    analysis::Table table;
    table.columns = {{"stage", "Stage", "", ColumnType::integer}, {"loss_of", "Loss of", "", ColumnType::text},
                     {"step", "Step", "", ColumnType::integer},   {"rate", "Learning rate", "", ColumnType::real},
                     {"loss", "Loss", "", ColumnType::real},      {"error", "Error", "", ColumnType::real}};
    return table;
}

std::string told(engine::EchoLoss loss, std::span<const engine::EchoStep> steps) {
    const size_t some = std::min<size_t>(steps.size(), 10);
    const auto mean = [](std::span<const engine::EchoStep> of) {
        double sum = 0;
        for (const auto& step : of) sum += step.error;
        return sum / static_cast<double>(of.size());
    };
    const double first = mean(steps.first(some)), last = mean(steps.last(some));
    switch (loss) {
        case engine::EchoLoss::keys_values:
            return fmt::format(
                "trained in {} steps: the maps missed {:.1f} % of keys and values in the first {}, {:.1f} % in the "
                "last",
                steps.size(), 100.0 * first, some, 100.0 * last);
        case engine::EchoLoss::outputs:
            return fmt::format(
                "tuned in {} steps: attention's outputs were off by {:.1f} % in the first {}, by {:.1f} % in the last",
                steps.size(), 100.0 * first, some, 100.0 * last);
        case engine::EchoLoss::qk_kl:
            break;
    }
    return fmt::format("tuned in {} steps: attention diverged by {:.4g} nats in the first {}, by {:.4g} in the last",
                       steps.size(), first, some, last);
}

/// A stage of gradient descent. Its steps go into the curve.
void descend(const engine::Model& model, policies::EchoMaps& maps, std::span<const int32_t> text,
             engine::EchoTuningOptions options, analysis::Table& curve, TerminalProgress& progress) {
    if (options.steps == 0) return;
    options.on_step = [&](const engine::EchoStep& step) { progress.set_note(fmt::format("loss {:.4g}", step.loss)); };
    const auto steps = engine::tune_echo(model, maps, text, options, progress);
    const int64_t stage = options.loss == engine::EchoLoss::keys_values ? 1 : 2;
    for (size_t i = 0; i < steps.size(); ++i)
        curve.rows.push_back({.cells = {stage, std::string(engine::name_of(options.loss)), static_cast<int64_t>(i) + 1,
                                        steps[i].rate, steps[i].loss, steps[i].error}});
    progress.message(told(options.loss, steps));
}

policies::EchoMaps first_stage(const engine::Model& model, std::span<const int32_t> text, const Arguments& arguments,
                               analysis::Table& curve, TerminalProgress& progress) {
    if (arguments.is_descent()) {
        auto maps = engine::untrained_echo_maps(model, arguments.options.ratio, arguments.descent.seed);
        descend(model, maps, text, arguments.descent, curve, progress);
        return maps;
    }
    auto training = engine::train_echo(model, text, arguments.options, progress);
    progress.message(told(fmt::format("On the {} tokens of the text", training.n_tokens).c_str(), training.errors));
    return std::move(training.maps);
}

void check_on_held_out(const engine::Model& model, const policies::EchoMaps& maps, std::span<const int32_t> held_out,
                       const Arguments& arguments, TerminalProgress& progress) {
    if (static_cast<int64_t>(held_out.size()) <= arguments.options.skipped) return;
    const auto errors = engine::echo_errors(model, maps, held_out, arguments.options, progress);
    engine::EchoTuningOptions options = arguments.tuning;
    options.loss = engine::EchoLoss::outputs;
    options.sequence = std::min(options.sequence, static_cast<int64_t>(held_out.size()));
    const double off = engine::echo_loss_error(model, maps, held_out, options, progress);
    progress.message(fmt::format("{}; attention's outputs are off by {:.1f} %",
                                 told(fmt::format("On the {} held out", held_out.size()).c_str(), errors),
                                 100.0 * off));
}

/// What can be refused before anything is read is.
void prepare_steps(Arguments& arguments, int64_t n_tokens) {
    for (auto* options : {&arguments.descent, &arguments.tuning}) {
        const bool is_tuning = options == &arguments.tuning;
        options->sequence = std::min(options->sequence, arguments.options.sequence);
        if (options->steps == 0 || (!is_tuning && !arguments.is_descent())) continue;
        if (n_tokens < options->sequence)
            throw engine::UsageError(fmt::format("the text has {} tokens, a step of {} reads {}: give a longer text",
                                                 n_tokens, is_tuning ? "--tune" : "--stage1 adamw", options->sequence));
        engine::require_tuning_state(options->state);
    }
}

void train(Arguments& arguments, TerminalProgress& progress) {
    const auto model = arguments.model.open(progress);
    arguments.options.sequence = std::min(arguments.options.sequence, model.transformer().config().context_length);
    auto ids = tokens_of(model, arguments.texts);
    if (arguments.n_tokens > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(arguments.n_tokens)));
    const auto n_held = static_cast<size_t>(arguments.held_out * static_cast<double>(ids.size()));
    const std::span<const int32_t> all(ids);
    const auto text = all.first(ids.size() - n_held);
    prepare_steps(arguments, static_cast<int64_t>(text.size()));
    analysis::Table curve = empty_curve();
    auto maps = first_stage(model, text, arguments, curve, progress);
    descend(model, maps, text, arguments.tuning, curve, progress);
    figures::write_whole_file(arguments.output, policies::to_safetensors(maps), arguments.force);
    if (!arguments.curve.empty())
        figures::write_whole_file(arguments.curve, analysis::format_table(curve, analysis::TableFormat::csv),
                                  arguments.force);
    std::error_code error;
    for (const auto& state : arguments.states())
        std::filesystem::remove(state, error);  // left behind, it is gone on with or written over
    const auto& layout = maps.layout;
    progress.message(fmt::format(
        "{} written: groups of {} layers, of which all but the first store {} of {} numbers; "
        "the cache needs {:.1f} % of its bytes, and those of the tokens that stay exact",
        arguments.output.string(), layout.group, layout.local, layout.width(), 100.0 * layout.model_ratio()));
    check_on_held_out(model, maps, all.last(n_held), arguments, progress);
}

void require_sense(const Arguments& arguments) {
    if (!arguments.curve.empty() && !arguments.is_descent() && arguments.tuning.steps == 0)
        throw engine::UsageError("--loss: least squares take no steps; give --stage1 adamw, or --tune STEPS");
    if (!arguments.force) {
        figures::refuse_existing(arguments.output);
        if (!arguments.curve.empty()) figures::refuse_existing(arguments.curve);
    }
}

int act(Arguments& arguments) {
    require_sense(arguments);
    const auto beside = [&](const char* suffix) { return arguments.output.string() + suffix; };
    arguments.options.state = beside(".moments");
    arguments.descent.state = beside(".stage1");
    arguments.tuning.state = beside(".stage2");
    arguments.tuning.loss = arguments.tune_loss == "qk-kl" ? engine::EchoLoss::qk_kl : engine::EchoLoss::outputs;
    TerminalProgress progress(arguments.quiet,
                              "stopped; the same command goes on from what was done by the last minute");
    try {
        train(arguments, progress);
    } catch (const engine::Cancelled&) {
        const auto states = arguments.states();
        throw std::runtime_error(
            std::any_of(states.begin(), states.end(), [](const auto& state) { return std::filesystem::exists(state); })
                ? "stopped; the same command goes on behind what was done"
                : "stopped");
    }
    return 0;
}

void declare_stages(CLI::App& app, Arguments& arguments) {
    auto* stage1 = app.add_option("--stage1", arguments.stage1,
                                  "How maps come to give keys and values: by least squares at once, or towards them by "
                                  "gradient descent, as in the paper")
                       ->transform(OneOf({"least-squares", "adamw"}))
                       ->capture_default_str();
    app.add_option("--ridge", arguments.options.ridge,
                   "Of least squares: times the inputs' mean square, what is added to each input's own")
        ->check(RealNumber(0, 1e6))
        ->capture_default_str();
    app.add_option("--steps", arguments.descent.steps, "Of --stage1 adamw")
        ->check(WholeNumber(1))
        ->needs(stage1)
        ->capture_default_str();
    auto* tune = app.add_option("--tune", arguments.tuning.steps,
                                "Steps of gradient descent behind the first stage, on what attention gives (the "
                                "paper's second stage has 1000); 0: none")
                     ->check(WholeNumber(0))
                     ->capture_default_str();
    app.add_option("--tune-loss", arguments.tune_loss,
                   "What --tune makes small: the squared difference of attention's outputs, or the divergence of the "
                   "attention itself (which changes the keys' maps alone)")
        ->transform(OneOf({"outputs", "qk-kl"}))
        ->needs(tune)
        ->capture_default_str();
    app.add_option("--loss", arguments.curve, "A file for the loss of each step of gradient descent")
        ->check(NewFile())
        ->type_name("FILE.csv");
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
    app.add_option(
           "--sequence", options.sequence,
           "Tokens that are read at a time, at most the model's context; by a step of gradient descent at most 512")
        ->check(WholeNumber(8))
        ->capture_default_str();
    declare_stages(app, *arguments);
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
            "  kvscope train-echo --tune 1000 --loss loss.csv -o tuned.safetensors\n"
            "  kvscope run -f report.txt --question Who? --policy echokv:maps=echo.safetensors -o r.h5",
            declare};
}

}  // namespace kvscope::cli
