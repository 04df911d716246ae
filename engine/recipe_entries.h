#pragma once

#include <nlohmann/json.hpp>

#include "engine/experiment.h"
#include "engine/inference/prompt.h"

namespace kvscope::engine {

/// What a recipe has of a prompt and of a run.
nlohmann::ordered_json recipe_entry(const Prompt& prompt);
/// @throws checkpoint::CheckpointError for a file of the policy's that cannot be read
nlohmann::ordered_json recipe_entry(const RunPlan& plan);
/// The same without the fingerprint of the policy's files, which are not read.
nlohmann::ordered_json recipe_entry_without_files(const RunPlan& plan);

}  // namespace kvscope::engine
