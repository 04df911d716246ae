#pragma once

#include <cstddef>
#include <cstdint>

#include "app/program/engine/prepared_job.h"

namespace kvscope::program {

/// Predicts the size of the job's finished trace in bytes from the shapes of its largest data sets. Answers that end
/// early, scores that no policy computes and compression make the file smaller.
[[nodiscard]] double predicted_trace_bytes(const PreparedJob& prepared, const engine::Model& model);

/// Predicts the bytes that one prompt adds to the folder of the unfinished trace.
[[nodiscard]] double predicted_prompt_bytes(const PreparedJob& prepared, const engine::Model& model, size_t prompt);

/// @throws engine::UsageError with both sizes if the predicted size exceeds the job's `most_disk_bytes`
void require_trace_within_limit(const PreparedJob& prepared, const engine::Model& model);

/// Checks that the file system of the output can store the rest of the parts, and beside them the trace in which they
/// are joined. The folder that the job resumes and the trace that it extends already store some parts.
/// @throws engine::RunError with both sizes if there is less free space
void require_free_space(const PreparedJob& prepared, const engine::Model& model);

/// Call before each prompt. Finished prompts stay in the folder of the unfinished trace.
/// @throws engine::RunError if the folder and the predicted bytes of the prompt exceed the job's `most_disk_bytes`
void require_prompt_within_limit(const PreparedJob& prepared, const engine::Model& model, const trace::Writer& writer,
                                 size_t prompt);

}  // namespace kvscope::program
