#include "app/program/engine/training_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/program/input_files.h"
#include "engine/common/engine_error.h"
#include "engine/prefill/prompt.h"

namespace kvscope::program {
namespace {

std::vector<int32_t> tokens_of(const engine::Model& model, std::vector<std::filesystem::path> texts,
                               const std::stop_token& stop) {
    if (texts.empty()) texts.push_back(asset_path("training/english.txt"));
    std::vector<int32_t> ids;
    for (const auto& path : texts) {
        const std::string text = read_text(path);
        engine::require_utf8(text, display_name_of_input(path));
        const auto of_text = model.tokenizer().encode(text, false, false, stop);
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
    return fmt::format("{}: mean error of rebuilt keys {:.1f} %, of values {:.1f} %, over {} layers", what,
                       100.0 * mean.keys, 100.0 * mean.values, errors.size());
}

std::string told(engine::EchoLoss loss, std::span<const engine::EchoStep> steps) {
    // The first and the last steps do not overlap, so that a reported decrease is real.
    const size_t some = std::clamp<size_t>(steps.size() / 2, 1, 10);
    const auto mean = [](std::span<const engine::EchoStep> of) {
        double sum = 0;
        for (const auto& step : of) sum += step.error;
        return sum / static_cast<double>(of.size());
    };
    const double first = mean(steps.first(some)), last = mean(steps.last(some));
    switch (loss) {
        case engine::EchoLoss::keys_values:
            return fmt::format(
                "trained in {} steps: mean error of keys and values {:.1f} % in the first {} steps, {:.1f} % in the "
                "last",
                steps.size(), 100.0 * first, some, 100.0 * last);
        case engine::EchoLoss::outputs:
            return fmt::format(
                "tuned in {} steps: mean error of attention outputs {:.1f} % in the first {} steps, {:.1f} % in the "
                "last",
                steps.size(), 100.0 * first, some, 100.0 * last);
        case engine::EchoLoss::qk_kl:
            break;
    }
    return fmt::format(
        "tuned in {} steps: mean divergence of attention {:.4g} nats in the first {} steps, {:.4g} in the last",
        steps.size(), first, some, last);
}

void descend(const engine::Model& model, policies::EchoMaps& maps, std::span<const int32_t> text,
             engine::EchoTuningOptions options, engine::Progress& progress, const TrainingEvents& events) {
    if (options.steps == 0) return;
    const auto loss = options.loss;
    if (events.on_step) options.on_step = [&](const engine::EchoStep& step) { events.on_step(loss, step); };
    if (events.on_resumed)
        options.on_resumed = [&](std::span<const engine::EchoStep> before) { events.on_resumed(loss, before); };
    const auto steps = engine::tune_echo_maps(model, maps, text, options, progress);
    if (events.on_stage) events.on_stage(loss, steps);
    progress.message(told(loss, steps));
}

std::pair<policies::EchoMaps, std::optional<MeanError>> first_stage(const engine::Model& model,
                                                                    std::span<const int32_t> text,
                                                                    const TrainingJob& job, engine::Progress& progress,
                                                                    const TrainingEvents& events) {
    if (job.by_descent) {
        auto maps = engine::make_random_echo_maps(model, job.options.ratio, job.descent.seed);
        descend(model, maps, text, job.descent, progress, events);
        return {std::move(maps), std::nullopt};
    }
    auto training = engine::train_echo_maps(model, text, job.options, progress);
    progress.message(told(fmt::format("On the {} training tokens", training.n_tokens).c_str(), training.errors));
    const MeanError missed = mean_of(training.errors);
    return {std::move(training.maps), missed};
}

constexpr double overfitted = 1.5;  // ratio of held-out error to training error

/// @param of_text mean error on the training text if the maps are a least-squares solution, otherwise nullopt
void check_on_held_out(const engine::Model& model, const policies::EchoMaps& maps, std::span<const int32_t> held_out,
                       const std::optional<MeanError>& of_text, const TrainingJob& job, engine::Progress& progress) {
    if (static_cast<int64_t>(held_out.size()) <= job.options.skipped) return;
    const auto errors = engine::measure_echokv_map_errors(model, maps, held_out, job.options, progress);
    engine::EchoTuningOptions options = job.tuning;
    options.loss = engine::EchoLoss::outputs;
    options.sequence = std::min(options.sequence, static_cast<int64_t>(held_out.size()));
    const double off = engine::evaluate_echo_loss(model, maps, held_out, options, progress);
    progress.message(fmt::format("{}; error of attention outputs {:.1f} %",
                                 told(fmt::format("On the {} held-out tokens", held_out.size()).c_str(), errors),
                                 100.0 * off));
    if (!of_text) return;
    const MeanError of_others = mean_of(errors);
    const double times = (of_others.keys + of_others.values) / (of_text->keys + of_text->values);
    if (times > overfitted)
        progress.message(fmt::format(
            "The maps fit their training text but not other texts: their error on the held-out tokens is {:.1f} times "
            "the training error. Train on a longer text, or set a ridge above {:g}",
            times, job.options.ridge));
}

void prepare_steps(TrainingJob& job, int64_t n_tokens) {
    for (auto* options : {&job.descent, &job.tuning}) {
        const bool is_tuning = options == &job.tuning;
        options->sequence = std::min(options->sequence, job.options.sequence);
        if (options->steps == 0 || (!is_tuning && !job.by_descent)) continue;
        if (n_tokens < options->sequence)
            throw engine::UsageError(
                fmt::format("the text has {} tokens, but a step of {} needs {}: give a longer text or raise --tokens",
                            n_tokens, is_tuning ? "--tune" : "--stage1 adamw", options->sequence));
        engine::refuse_foreign_state_file(options->state);
    }
}

}  // namespace

void TrainingJob::set_output(const std::filesystem::path& path) {
    output = path;
    const auto beside = [&](const char* suffix) { return path.string() + suffix; };
    options.state = beside(".moments");
    descent.state = beside(".stage1");
    tuning.state = beside(".stage2");
}

bool TrainingJob::was_begun() const {
    std::error_code error;
    const auto& first = by_descent ? descent.state : options.state;
    return std::filesystem::exists(first, error) || std::filesystem::exists(tuning.state, error);
}

void TrainingJob::forget() const {
    std::error_code error;
    for (const auto& state : {by_descent ? descent.state : options.state, tuning.state})
        std::filesystem::remove(state, error);
}

void train_echo_maps(const engine::Model& model, TrainingJob job, engine::Progress& progress,
                     const TrainingEvents& events) {
    job.options.sequence = std::min(job.options.sequence, model.config().context_length);
    auto ids = tokens_of(model, job.texts, progress.stop_token());
    if (job.n_tokens > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(job.n_tokens)));
    const auto n_held = static_cast<size_t>(job.held_out * static_cast<double>(ids.size()));
    const std::span<const int32_t> all(ids);
    const auto text = all.first(ids.size() - n_held);
    prepare_steps(job, static_cast<int64_t>(text.size()));
    auto [maps, of_text] = first_stage(model, text, job, progress, events);
    if (job.tuning.steps > 0) of_text.reset();
    descend(model, maps, text, job.tuning, progress, events);
    events.write(policies::to_safetensors(maps));
    job.forget();  // otherwise the next training would resume from the state files
    const auto& layout = maps.layout;
    progress.message(
        fmt::format("{} written: groups of {} layers; a group's first layer stores all numbers, the other layers {} of "
                    "{}; the cache needs {:.1f} % of the full cache's bytes (requested: {:.4g} %), plus the bytes of "
                    "tokens that stay exact",
                    job.output.string(), layout.group, layout.local, layout.width(), 100.0 * layout.model_ratio(),
                    100.0 * job.options.ratio));
    check_on_held_out(model, maps, all.last(n_held), of_text, job, progress);
}

}  // namespace kvscope::program
