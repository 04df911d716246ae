#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/echo/echo_training.h"
#include "engine/echo/echo_tuning.h"
#include "engine/model/model.h"

namespace kvscope::program {

/// Settings for training EchoKV's maps with `kvscope train-echo` or in the app.
struct TrainingJob {
    std::vector<std::filesystem::path> texts;  ///< empty for the text installed with kvscope
    int64_t n_tokens = 0;                      ///< largest number of tokens to read; 0 for all
    double held_out = 0.05;   ///< share of the tokens, at the end, that measure errors and are not used for training
    bool by_descent = false;  ///< whether the first stage uses gradient descent instead of least squares
    engine::EchoTrainingOptions options;
    engine::EchoTuningOptions descent{.steps = 600, .loss = engine::EchoLoss::keys_values};
    engine::EchoTuningOptions tuning{.steps = 0};  ///< second stage; omitted if `steps` is 0
    std::filesystem::path output;
    bool force = false;

    /// Sets the output and the state files next to it, from which a stopped training resumes.
    void set_output(const std::filesystem::path& path);
    [[nodiscard]] bool was_begun() const;
    void forget() const;
};

/// Callbacks of a training. All except `write` may be empty.
struct TrainingEvents {
    /// Receives the steps that a stopped training has already finished in this stage.
    std::function<void(engine::EchoLoss, std::span<const engine::EchoStep>)> on_resumed;
    std::function<void(engine::EchoLoss, const engine::EchoStep&)> on_step;
    /// Receives all steps of a finished stage, including the steps before a resume.
    std::function<void(engine::EchoLoss, std::span<const engine::EchoStep>)> on_stage;
    /// Writes the maps to a file. The file must be on disk when the function returns.
    std::function<void(const std::string& bytes)> write;
};

/// Trains the maps, writes them and reports their errors. @throws UsageError for texts that are too short or not UTF-8;
/// Stopped, after which the state files remain
void train_echo_maps(const engine::Model& model, TrainingJob job, engine::Progress& progress,
                     const TrainingEvents& events);

}  // namespace kvscope::program
