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

/// Returns the prompts of a job in the order of a trace with this recipe, followed by further prompts. Prompts that
/// only the recipe has are not added.
std::vector<Prompt> in_order_of(const std::string& recipe_json, std::vector<Prompt> prompts);

/// Returns the runs of a job in the order of the recipe, followed by further runs.
/// @param keeps_others whether to add runs that only the recipe has, because the trace still holds them. Runs that this
/// build cannot make, or that are requested with other files, are not added.
std::vector<RunPlan> in_order_of(const std::string& recipe_json, std::vector<RunPlan> plans, bool keeps_others);

/// Returns the runs in the order of a complete trace, whose other runs are kept, and then in the order of the
/// unfinished trace beside it. The unfinished trace is ignored if it does not extend the complete one.
std::vector<RunPlan> in_order_of(const std::string& complete_json, const std::string& begun_json,
                                 std::vector<RunPlan> plans);

/// Returns the recipe with prompt entries as the trace of `stored_json` writes them. Earlier versions lack `special`,
/// `tokens` or `n_context`, which token ids determine. The caller must compare the ids and the beginning of the
/// question.
std::string with_entries_of(const std::string& stored_json, const std::string& recipe_json);

/// Whether the recipe has a question and comes from a version that tokenized context and question separately.
bool lacks_tokens(const std::string& recipe_json);

/// Adds to a recipe, as `rendered`, when prompts from other traces were rendered.
/// @param created when this trace was begun, which is also when its other prompts were rendered
std::string with_render_times(const std::string& recipe_json, std::span<const Prompt> prompts, std::time_t created);

/// Checks that all runs of a trace can be made for further prompts.
/// @throws trace::OutputExists if files of a run are missing or changed
void require_recorded_files(const std::filesystem::path& output, std::span<const RunPlan> plans);

/// Checks that no question is added to a context with runs that depend on the answers to all its questions.
/// @param stored a trace, complete or not, that is extended by the prompts and plans
/// @throws trace::OutputExists if a question would change such a run
void require_same_questions(const trace::Reader& stored, std::span<const Prompt> prompts,
                            std::span<const RunPlan> plans);

}  // namespace kvscope::engine
