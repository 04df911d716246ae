#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "app/program/engine/prepared_job.h"
#include "engine/tasks/api/task.h"
#include "trace/records/records.h"

namespace kvscope::program {

/// Scores in the trace from which a job takes its prompts (RunJob::prompt_from). They let a sample of a task that is
/// run again have the task's scores.
class RecordedScores {
 public:
    explicit RecordedScores(const PreparedJob& prepared);

    /// Returns the scorer by which the trace's rows of the same prompt were scored, or nullopt if there are none. If a
    /// scorer depends on the sample, predictions that the trace does not contain have the score NaN.
    [[nodiscard]] std::optional<engine::Scorer> scorer_of(const trace::ResultRow& row) const;

 private:
    struct OfPrompt {
        std::string metric, scored_as;
        std::map<std::string, double> of_predictions;
    };
    std::map<std::pair<std::string, std::int64_t>, OfPrompt> prompts_;  ///< by prompt_hash and question_seen
};

}  // namespace kvscope::program
