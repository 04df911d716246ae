#pragma once

#include <ctime>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"
#include "engine/inference/prompt.h"
#include "trace/reader.h"

namespace kvscope::engine {

/// Returns the prompts of a job in the order of the trace with this recipe, followed by further prompts.
std::vector<Prompt> in_order_of(const std::string& recipe_json, std::vector<Prompt> prompts);

/// Returns the runs of a job in the order of the recipe, followed by further runs.
/// @param keeps_others whether to add runs that only the recipe has, if this build can make them
std::vector<RunPlan> in_order_of(const std::string& recipe_json, std::vector<RunPlan> plans, bool keeps_others);

/// Returns the runs in the order of a complete trace, with its other runs, then of its unfinished extension.
std::vector<RunPlan> in_order_of(const std::string& complete_json, const std::string& begun_json,
                                 std::vector<RunPlan> plans);

/// Returns the recipe with prompt entries as in `stored_json`, which earlier versions wrote without `special`, `tokens`
/// or `n_context`. The caller must compare token ids and the beginning of the question.
std::string with_entries_of(const std::string& stored_json, const std::string& recipe_json);

/// Whether the recipe comes from a version that tokenized context and question separately.
bool lacks_tokens(const std::string& recipe_json);

/// Adds the render times of prompts from other traces to a recipe. @param created when this trace was begun
std::string with_render_times(const std::string& recipe_json, std::span<const Prompt> prompts, std::time_t created);

/// Checks that further prompts can be added. @throws trace::OutputExists if files of a run are missing or changed
void require_recorded_files(const std::filesystem::path& output, std::span<const RunPlan> plans);

/// Checks that no question is added to a context with runs that depend on the answers to all its questions.
/// @throws trace::OutputExists if a question would change such a run
void require_same_questions(const trace::Reader& stored, std::span<const Prompt> prompts,
                            std::span<const RunPlan> plans);

}  // namespace kvscope::engine
