#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/echo_training.h"
#include "engine/echo_tuning.h"
#include "engine/model/model.h"

namespace kvscope::program {

/// What `kvscope train-echo` and the window can ask for: EchoKV's maps from texts to a file.
struct TrainingJob {
    std::vector<std::filesystem::path> texts;  ///< none: the one that comes along
    int64_t n_tokens = 0;                      ///< of them that are read at most; 0: all
    double held_out = 0.05;                    ///< share of the text, its end, that the maps are only measured on
    bool by_descent = false;                   ///< the first stage by gradient descent, else by least squares
    engine::EchoTrainingOptions options;
    engine::EchoTuningOptions descent{.steps = 600, .loss = engine::EchoLoss::keys_values};
    engine::EchoTuningOptions tuning{.steps = 0};  ///< the second stage; 0 steps: none
    std::filesystem::path output;
    bool force = false;  ///< replaces what is at the output

    /// And where what was done so far is kept, beside it.
    void set_output(const std::filesystem::path& path);
    /// Whether the same job goes on behind something.
    bool was_begun() const;
    /// Removes what is kept of it.
    void forget() const;
};

/// What a caller takes part in; all but the last may be empty.
struct TrainingEvents {
    /// Those steps of a stage that it goes on behind, before it does.
    std::function<void(engine::EchoLoss, std::span<const engine::EchoStep>)> on_resumed;
    std::function<void(engine::EchoLoss, const engine::EchoStep&)> on_step;  ///< as each is done
    /// All steps of a stage at its end, also those that were resumed from.
    std::function<void(engine::EchoLoss, std::span<const engine::EchoStep>)> on_stage;
    /// Writes the file of maps; it is on disk when this returns. Needed.
    std::function<void(const std::string& bytes)> write;
};

/// Trains, writes the maps, and says in messages what they miss.
/// @throws what the stages throw; UsageError for texts that are too short or not UTF-8; what writing a file throws;
///         Cancelled, with what was done kept
void train(const engine::Model& model, TrainingJob job, engine::Progress& progress, const TrainingEvents& events);

}  // namespace kvscope::program
