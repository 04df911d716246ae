#pragma once

#include "common/json.h"
#include "engine/experiment.h"
#include "engine/prefill/prompt.h"

namespace kvscope::engine {

[[nodiscard]] nlohmann::ordered_json recipe_of_prompt(const Prompt& prompt);
/// Describes a run in a recipe. @throws checkpoint::CheckpointError if a file of the policy cannot be read
[[nodiscard]] nlohmann::ordered_json recipe_of_run(const RunPlan& plan);
/// Like recipe_of_run(), but does not read the policy's files.
[[nodiscard]] nlohmann::ordered_json recipe_of_run_without_files(const RunPlan& plan);

}  // namespace kvscope::engine
