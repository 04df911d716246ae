#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/program/engine/prompt_sources.h"
#include "app/program/engine/run_job.h"
#include "trace/records/records.h"

namespace kvscope::gui {

struct UnfinishedRun {
    program::RunJob job;  ///< without the model
    std::vector<engine::RunPlan> plans;
    trace::ModelAttributes model;  ///< model to continue with
};

/// Reads the folder `<output>.part`. Throws std::runtime_error or std::invalid_argument if the run cannot be continued.
[[nodiscard]] UnfinishedRun read_unfinished_run(const std::filesystem::path& output);

/// Returns a sentence about the finished parts of an unfinished trace, which the run does not repeat.
[[nodiscard]] std::string describe_kept_parts(const std::filesystem::path& output);

/// Returns whether the trace or unfinished trace at `output` records spectra, or nullopt if there is no trace.
[[nodiscard]] std::optional<bool> recorded_choice_of_spectra(const std::filesystem::path& output, bool replaced);

/// Converts a request to a job of `kvscope run` or `kvscope eval`. The job computes no spectra of the weights. The
/// caller must set the prompts and, if the request names no output, the output.
[[nodiscard]] program::RunJob make_run_job(const RunRequest& request);

/// Returns the job of EngineSession::run_sample(), with its output in the current folder and without a model.
[[nodiscard]] program::RunJob make_sample_job(const trace::Reader& reader, const SampleRun& run);

/// Reads the prompts of a request. Call on another thread than the UI thread, because folders may have many files.
/// @throws std::runtime_error if a source is unreadable
[[nodiscard]] program::PromptsFound find_prompts(const RunRequest& request);
[[nodiscard]] PromptSource read_prompt_source(const std::filesystem::path& source);

}  // namespace kvscope::gui
