#pragma once

#include <ctime>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"
#include "engine/prefill/prompt.h"
#include "trace/reader.h"

namespace kvscope::engine {

/// Returns the prompts in the order of a recipe, followed by prompts that the recipe lacks.
[[nodiscard]] std::vector<Prompt> in_order_of_recipe(const std::string& recipe_json, std::vector<Prompt> prompts);

/// Returns the runs in the order of the recipe, followed by runs that the recipe lacks.
/// @param keeps_others whether to add runs of the recipe that `plans` lacks and this build supports
[[nodiscard]] std::vector<RunPlan> in_order_of_recipe(const std::string& recipe_json, std::vector<RunPlan> plans,
                                                      bool keeps_others);

/// Returns the runs in the order of an unfinished trace's recipe. If the recipe contains all of them, adds its other
/// runs, so that a command can continue a trace that a longer command began.
[[nodiscard]] std::vector<RunPlan> in_order_of_unfinished_trace(const std::string& begun_json,
                                                                std::vector<RunPlan> plans);

/// Returns first the runs of a complete trace, then the runs of its unfinished extension, then all other runs.
[[nodiscard]] std::vector<RunPlan> in_order_of_recipe(const std::string& complete_json, const std::string& begun_json,
                                                      std::vector<RunPlan> plans);

/// Returns the recipe with the prompt entries of `stored_json`, which lack fields if an earlier version wrote them.
/// The caller must compare token ids and the start of the question.
[[nodiscard]] std::string with_stored_prompt_entries(const std::string& stored_json, const std::string& recipe_json);

/// Whether the recipe is from a version that tokenized context and question separately.
[[nodiscard]] bool recipe_lacks_token_ids(const std::string& recipe_json);

/// Adds the render times of prompts from other traces to a recipe. @param created creation time of this trace
[[nodiscard]] std::string recipe_with_render_times(const std::string& recipe_json, std::span<const Prompt> prompts,
                                                   std::time_t created);

/// @throws trace::OutputExists if a policy file of a recorded run is missing or has changed
void require_recorded_files(const std::filesystem::path& output, std::span<const RunPlan> plans);

/// @throws trace::OutputExists if a new question would change runs whose policies use the answers to all questions
void refuse_questions_that_change_runs(const trace::Reader& stored, std::span<const Prompt> prompts,
                                       std::span<const RunPlan> plans);

}  // namespace kvscope::engine
