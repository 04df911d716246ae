#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/cli/command.h"
#include "app/cli/engine/model_options.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/option_validators.h"
#include "app/figures/same_file.h"
#include "app/program/engine/training_job.h"
#include "common/whole_file.h"
#include "engine/common/engine_error.h"

namespace kvscope::cli::train_echo_file {
namespace {

struct Arguments {
    ModelOptions model;
    program::TrainingJob job;
    std::filesystem::path output, curve;
    std::string stage1 = "least-squares", inputs = "both", tune_loss = "outputs";
    bool quiet = false;
    const CLI::Option *steps = nullptr, *ridge = nullptr;
};

/// The table of losses. During training, its rows are in a `.part` file, which stays if the training fails.
class Curve {
 public:
    explicit Curve(std::filesystem::path path) : path_(std::move(path)) {
        using analysis::ColumnType;
        table_.columns = {{"stage", "Stage", "", ColumnType::integer}, {"loss_of", "Loss of", "", ColumnType::text},
                          {"step", "Step", "", ColumnType::integer},   {"rate", "Learning rate", "", ColumnType::real},
                          {"loss", "Loss", "", ColumnType::real},      {"error", "Error", "", ColumnType::real}};
    }

    static std::filesystem::path part_of(const std::filesystem::path& curve) { return curve.string() + ".part"; }

    /// Returns true if a file may be replaced, because it is absent, empty, or a table of losses.
    static bool is_own(const std::filesystem::path& file) {
        std::error_code error;
        if (!std::filesystem::exists(std::filesystem::symlink_status(file, error)) || error) return true;
        if (!std::filesystem::is_regular_file(file, error)) return false;
        std::ifstream in(file, std::ios::binary);
        std::string first;
        return in && (!std::getline(in, first) || first.starts_with("stage,loss_of,step"));
    }

    void add(engine::EchoLoss loss, std::span<const engine::EchoStep> steps) {
        if (path_.empty()) return;
        if (!file_.is_open()) begin();
        const int64_t stage = loss == engine::EchoLoss::keys_values ? 1 : 2;
        table_.rows.clear();
        for (const auto& step : steps)
            table_.rows.push_back({.cells = {stage, std::string(engine::echo_loss_name(loss)), ++n_steps_[stage],
                                             step.rate, step.loss, step.error}});
        const std::string csv = analysis::format_table(table_, analysis::TableFormat::csv);
        write(csv.substr(csv.find('\n') + 1));
    }

    void finish(bool replace) {
        if (path_.empty()) return;
        file_.close();
        write_whole_file(path_, text_, replace);
        std::error_code error;
        std::filesystem::remove(part(), error);
    }

 private:
    std::filesystem::path part() const { return part_of(path_); }

    void begin() {
        file_.open(part(), std::ios::binary | std::ios::trunc);
        write(analysis::format_table(table_, analysis::TableFormat::csv));
    }

    void write(const std::string& rows) {
        text_ += rows;
        if (!(file_ << rows << std::flush))
            throw std::runtime_error(fmt::format("{} cannot be written: {}", part().string(), std::strerror(errno)));
    }

    std::filesystem::path path_;
    analysis::Table table_;
    std::map<int64_t, int64_t> n_steps_;
    std::ofstream file_;
    std::string text_;
};

void train(const Arguments& arguments, TerminalProgress& progress) {
    const auto model = arguments.model.open(progress);
    Curve curve(arguments.curve);
    program::TrainingEvents events;
    events.on_resumed = [&](engine::EchoLoss loss, std::span<const engine::EchoStep> steps) { curve.add(loss, steps); };
    events.on_step = [&](engine::EchoLoss loss, const engine::EchoStep& step) {
        progress.set_note(fmt::format("loss {:.4g}", step.loss));
        curve.add(loss, {&step, 1});
    };
    events.write = [&](const std::string& bytes) {
        write_whole_file(arguments.output, bytes, arguments.job.force);
        curve.finish(arguments.job.force);
    };
    program::train_echo_maps(model, arguments.job, progress, events);
}

/// Checks that --loss replaces only a table of losses, even with --force.
void require_curve(const Arguments& arguments) {
    const std::string curve = arguments.curve.string();
    const auto part = Curve::part_of(arguments.curve);
    if (figures::are_same_file(arguments.curve, arguments.output) || figures::are_same_file(part, arguments.output))
        throw engine::UsageError(fmt::format("--loss {}: the maps are written to this file; name another file", curve));
    const auto refuse = [&](const std::filesystem::path& file) {
        throw engine::UsageError(
            fmt::format("--loss {}: {} is not a table of losses: move it away", curve, file.string()));
    };
    std::error_code error;
    if (!Curve::is_own(part)) refuse(part);
    if (std::filesystem::is_regular_file(arguments.curve, error) && !Curve::is_own(arguments.curve))
        refuse(arguments.curve);
}

void require_sense(const Arguments& arguments) {
    if (!arguments.curve.empty() && !arguments.job.by_descent && arguments.job.tuning.steps == 0)
        throw engine::UsageError("--loss needs gradient descent: add --stage1 adamw or --tune STEPS");
    if (arguments.inputs != "both" && (arguments.job.by_descent || arguments.job.tuning.steps > 0))
        throw engine::UsageError("--inputs applies to least squares only: leave out --stage1 adamw and --tune");
    if (arguments.steps->count() > 0 && !arguments.job.by_descent)
        throw engine::UsageError("--steps applies to --stage1 adamw only: least squares has no steps");
    if (arguments.ridge->count() > 0 && arguments.job.by_descent)
        throw engine::UsageError("--ridge applies to least squares only: leave out --stage1 adamw");
    if (!arguments.curve.empty()) require_curve(arguments);
    if (!arguments.job.force) {
        refuse_existing(arguments.output);
        if (!arguments.curve.empty()) refuse_existing(arguments.curve);
    }
}

int act(Arguments& arguments) {
    arguments.job.by_descent = arguments.stage1 == "adamw";
    arguments.job.tuning.loss = arguments.tune_loss == "qk-kl" ? engine::EchoLoss::qk_kl : engine::EchoLoss::outputs;
    if (arguments.inputs != "both")
        arguments.job.options.inputs =
            arguments.inputs == "own" ? engine::EchoInputs::own : engine::EchoInputs::first_layer;
    require_sense(arguments);
    arguments.job.set_output(arguments.output);
    TerminalProgress progress(
        arguments.quiet, [] { return "stopped; the same command resumes from a state that is at most a minute old"; });
    try {
        train(arguments, progress);
    } catch (const Stopped&) {
        throw std::runtime_error(arguments.job.was_begun() ? "stopped; the same command resumes where it stopped"
                                                           : "stopped");
    }
    return 0;
}

void declare_stages(CLI::App& app, Arguments& arguments) {
    auto* stage1 =
        app.add_option("--stage1", arguments.stage1,
                       "How the maps are fitted to keys and values: in closed form by least squares, or by gradient "
                       "descent as in the paper")
            ->transform(OneOf({"least-squares", "adamw"}))
            ->capture_default_str();
    arguments.ridge = app.add_option("--ridge", arguments.job.options.ridge,
                                     "Ridge regularization of least squares, relative to the mean square of the inputs")
                          ->check(RealNumber(0, 1e6))
                          ->capture_default_str();
    app.add_option(
           "--inputs", arguments.inputs,
           "Inputs of least squares: the stored numbers of the group's first layer, of the layer itself, or of both")
        ->transform(OneOf({"both", "first-layer", "own"}))
        ->capture_default_str();
    arguments.steps =
        app.add_option("--steps", arguments.job.descent.steps, "Number of gradient descent steps with --stage1 adamw")
            ->check(WholeNumber(1))
            ->needs(stage1)
            ->capture_default_str();
    auto* tune = app.add_option("--tune", arguments.job.tuning.steps,
                                "Number of gradient descent steps on the attention after the first stage (1000 in the "
                                "paper); 0 for none")
                     ->check(WholeNumber(0))
                     ->capture_default_str();
    app.add_option("--tune-loss", arguments.tune_loss,
                   "Loss of --tune: outputs for the squared difference of attention outputs, qk-kl for the divergence "
                   "of attention weights (trains only the maps of keys)")
        ->transform(OneOf({"outputs", "qk-kl"}))
        ->needs(tune)
        ->capture_default_str();
    app.add_option("--loss", arguments.curve,
                   "Table file for the loss of each gradient descent step; named FILE.csv.part during training")
        ->check(NewFile())
        ->type_name("FILE.csv");
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    auto& options = arguments->job.options;
    arguments->model.declare_model(app, ModelOptions::As::option);
    arguments->model.declare_dtype(app);
    arguments->model.declare_threads(app);
    app.add_option("texts", arguments->job.texts, "Texts to train on (default: the installed English prose)")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    app.add_option("-o,--output", arguments->output, "File for the trained maps")
        ->required()
        ->check(NewFile())
        ->type_name("FILE.safetensors");
    app.add_option("--ratio", options.ratio,
                   "Share of the full cache's bytes to keep; the nearest possible share is reported")
        ->check(RealNumber(0, 1))
        ->capture_default_str();
    app.add_option("--tokens", arguments->job.n_tokens, "Largest number of tokens to read from the texts; 0 for all")
        ->check(WholeNumber(0))
        ->capture_default_str();
    app.add_option("--sequence", options.sequence,
                   "Number of tokens per pass, limited by the model's context and, for gradient descent, to 512")
        ->check(WholeNumber(8))
        ->capture_default_str();
    declare_stages(app, *arguments);
    app.add_option("--held-out", arguments->job.held_out,
                   "Share of the text that is reserved for measuring errors, taken from the end")
        ->check(RealNumber(0, 0.9))
        ->capture_default_str();
    app.add_flag("--force", arguments->job.force, "Replace an existing output");
    app.add_flag("-q,--quiet", arguments->quiet, "Hide progress");
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::train_echo_file

namespace kvscope::cli {

Command train_echo_command() {
    using namespace train_echo_file;
    return {"train-echo", "Train the maps from which the policy echokv rebuilds keys and values",
            "  kvscope train-echo --ratio 0.5 -o echo.safetensors\n"
            "  kvscope train-echo --tune 1000 --loss loss.csv -o tuned.safetensors\n"
            "  kvscope run -f report.txt --question Who? --policy echokv:maps=echo.safetensors -o r.h5",
            declare};
}

}  // namespace kvscope::cli
