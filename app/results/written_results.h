#pragma once

#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/results/questions_of_samples.h"
#include "common/full_policy.h"
#include "trace/reader.h"

namespace kvscope::results {

/// Samples of a task that a policy setting answered with one budget.
struct WrittenRun {
    std::string task;                             ///< table of results
    std::string setting;                          ///< RowSettings::setting
    std::string budget;                           ///< as requested, "64" or "0.2"; "" for `full`
    std::vector<const trace::ResultRow*> rows{};  ///< at least one, of complete runs

    [[nodiscard]] const trace::ResultRow& first() const { return *rows.front(); }
    [[nodiscard]] bool is_full() const { return first().policy == full_policy; }
};

/// Results of all tasks of a trace; if there are none, of its prompts.
struct WrittenResults {
    std::string generator;
    std::time_t created = 0;
    std::map<std::string, std::vector<trace::ResultRow>> tables;
    std::map<std::string, trace::PromptAttributes> prompts;  ///< stored prompts by ResultRow::prompt_hash
    analysis::QuestionsOfSamples questions;                  ///< of samples, whose prompts are not stored
    std::vector<WrittenRun> runs;                            ///< point into `tables`
    size_t n_failed = 0;                                     ///< rows of failed runs, which are omitted

    /// Returns "" if the trace has no question of the row's prompt.
    [[nodiscard]] std::string question(const trace::ResultRow& row) const;

    WrittenResults() = default;
    WrittenResults(WrittenResults&&) = default;
    WrittenResults& operator=(WrittenResults&&) = default;
    WrittenResults(const WrittenResults&) = delete;  // `runs` would point into the original
    WrittenResults& operator=(const WrittenResults&) = delete;
    ~WrittenResults() = default;
};

/// @throws std::runtime_error if the trace has no results of complete runs; the errors of reading
[[nodiscard]] WrittenResults results_to_write(const trace::Reader& reader);

struct ResultFile {
    std::filesystem::path path;  ///< relative to the output folder
    std::string text;
};

/// Returns predictions.csv, metrics.json and config.yaml, as kvpress's evaluation writes them. A folder contains one
/// run and, as in kvpress, one length of RULER or one set of LongBench. Values that the trace lacks are empty.
[[nodiscard]] std::vector<ResultFile> files_of_kvpress(const WrittenResults& results);

/// Returns results_<time>.json and samples_<task>_<time>.jsonl as lm-eval writes them with --log_samples. A folder
/// contains one run. Values that the trace lacks are empty.
[[nodiscard]] std::vector<ResultFile> files_of_lm_eval(const WrittenResults& results);

/// Writes the files with their folders. @throws FileExists, before anything is written, if a file exists and `replace`
/// is false; FileNotWritten
void write_result_files(const std::vector<ResultFile>& files, const std::filesystem::path& folder, bool replace);

/// Returns a path that is not in `used`, and adds it: "a", or "a/1", "a/2" as kvpress does.
[[nodiscard]] std::filesystem::path unused_folder(const std::string& name, std::map<std::string, int>& used);

/// Returns the accepted answers of a row.
[[nodiscard]] std::vector<std::string> answers_of(const trace::ResultRow& row);

}  // namespace kvscope::results
