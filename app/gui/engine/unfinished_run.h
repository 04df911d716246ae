#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "app/program/engine/run_job.h"
#include "trace/records.h"

namespace kvscope::gui {

/// What is left to do of a trace that was begun, as its recipe and its prompts say it.
struct UnfinishedRun {
    program::RunJob job;  ///< the model aside
    std::vector<engine::RunPlan> plans;
    trace::ModelAttributes model;  ///< that it has to go on with
};

/// Of the folder `<output>.part`. @throws std::runtime_error, std::invalid_argument with a sentence on why it cannot go
/// on: there is none, a prompt was not read yet, or the recipe is not understood
UnfinishedRun unfinished_run(const std::filesystem::path& output);

}  // namespace kvscope::gui
