#pragma once

#include <nlohmann/json.hpp>

#include "engine/experiment.h"
#include "engine/inference/prompt.h"

namespace kvscope::engine {

nlohmann::ordered_json recipe_entry(const Prompt& prompt);
/// @throws checkpoint::CheckpointError if a file of the policy cannot be read
nlohmann::ordered_json recipe_entry(const RunPlan& plan);
/// Returns the entry of a run without reading the policy's files.
nlohmann::ordered_json recipe_entry_without_files(const RunPlan& plan);

}  // namespace kvscope::engine
