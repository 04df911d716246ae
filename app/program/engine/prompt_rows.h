#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/program/engine/prepared_job.h"
#include "app/program/engine/recorded_scores.h"
#include "engine/common/progress.h"
#include "trace/writer.h"

namespace kvscope::program {

/// Receives warnings in sentences.
using Warn = std::function<void(const std::string&)>;

/// Writes /results/prompts from the recorded data of all runs, also those recorded before the command was resumed.
void write_rows_of_prompts(const PreparedJob& prepared, trace::Writer& writer, engine::Progress& progress,
                           const Warn& warn);

/// Replaces each finished prompt of an unfinished trace by its rows (RunOptions::stores_only_rows). Refers to its
/// arguments.
class RowsOnly {
 public:
    /// Copies the rows that a complete trace of the job already contains.
    RowsOnly(const PreparedJob& prepared, trace::Writer& writer, const Warn& warn);

    [[nodiscard]] bool has_rows(int prompt) const;
    /// Writes the rows of finished prompts and removes their data.
    void replace(const std::vector<int>& prompts);

 private:
    void copy_rows_of_complete_trace();

    const PreparedJob& prepared_;
    const RecordedScores scores_;
    trace::Writer& writer_;
    const Warn& warn_;
};

}  // namespace kvscope::program
