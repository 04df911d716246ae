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

/// A job's prompts in the order in which a trace of this recipe numbers its own, which come first; further ones after
/// them. Prompts of the recipe that are not asked for are not added.
std::vector<Prompt> in_order_of(const std::string& recipe_json, std::vector<Prompt> prompts);

/// The same of its runs.
/// @param keeps_others runs of the recipe that are not asked for are added, too: the trace goes on holding them. One
///                     that this build cannot make is left out, and so is one that is asked for with other files.
std::vector<RunPlan> in_order_of(const std::string& recipe_json, std::vector<RunPlan> plans, bool keeps_others);

/// The same of the runs of a complete trace, which keeps its others, and then of the folder beside it. A folder that
/// does not extend that trace has no say.
std::vector<RunPlan> in_order_of(const std::string& complete_json, const std::string& begun_json,
                                 std::vector<RunPlan> plans);

/// The recipe with prompts as a trace of `stored_json` writes them, whose version may leave out what their token ids
/// say (`special`, `tokens`, `n_context`). The caller compares the ids and where the question begins.
std::string with_entries_of(const std::string& stored_json, const std::string& recipe_json);

/// Whether it has a question and is of a version that tokenized context and question apart.
bool lacks_tokens(const std::string& recipe_json);

/// Adds to a recipe when each prompt of another trace was rendered, as `rendered`.
/// @param created when this trace was begun, and its other prompts were rendered
std::string with_render_times(const std::string& recipe_json, std::span<const Prompt> prompts, std::time_t created);

/// Further prompts need all runs of a trace.
/// @throws trace::OutputExists where a run has files that are missing or changed
void require_recorded_files(const std::filesystem::path& output, std::span<const RunPlan> plans);

/// Some runs go by the answers to all questions of a context: a further question would change them.
/// @param stored a trace, complete or not, which the prompts and plans contain in its order
/// @throws trace::OutputExists where it holds such a run and a question is to be added to the run's context
void require_same_questions(const trace::Reader& stored, std::span<const Prompt> prompts,
                            std::span<const RunPlan> plans);

}  // namespace kvscope::engine
