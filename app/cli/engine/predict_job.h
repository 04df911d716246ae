#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>

#include "app/cli/engine/run_in_terminal.h"

namespace kvscope::cli {

/// Prediction of a job. `kvscope sweep --dry-run` reads it as JSON from the file that the hidden option --prediction
/// names.
struct JobPrediction {
    int64_t n_prompts = 0;  ///< or samples
    int64_t n_runs = 0;     ///< of each prompt, with the full run
    int64_t n_tokens = 0;   ///< of all prompts together
    double seconds = 0;     ///< with loading the model
    double memory_bytes = 0;
    double trace_bytes = 0;
};

void declare_prediction(CLI::App& app, std::filesystem::path& file);

/// Runs one short prompt of the job, predicts the whole job from it, and writes the prediction as JSON. The job's
/// output is not used. @returns 0
[[nodiscard]] int predict_job(program::RunJob job, const TerminalOptions& options, const std::filesystem::path& file);

/// @throws std::runtime_error if the file is not a prediction
[[nodiscard]] JobPrediction read_prediction(const std::filesystem::path& file);

}  // namespace kvscope::cli
