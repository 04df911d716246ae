#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/results/questions_of_samples.h"
#include "app/results/unusable_file.h"
#include "trace/records/records.h"

namespace kvscope::results {

/// Samples that one run answered.
struct ImportedRun {
    std::string task;  ///< table of results
    std::vector<trace::ResultRow> rows;
};

struct Imported {
    std::vector<ImportedRun> runs;
    std::vector<std::string> left_out;           ///< messages about files and samples that cannot be used
    std::vector<std::string> notes;              ///< further messages
    std::map<std::string, std::string> digests;  ///< SHA-256 of each file that was read, by its path
    analysis::QuestionsOfSamples questions;      ///< "" for samples of equal names whose questions differ
};

/// Problems of the samples of one file. Only the first is reported in full.
class SampleProblems {
 public:
    /// @param problem names the file and the number of the line or sample
    void add(const std::string& problem);
    [[nodiscard]] bool empty() const { return n_ == 0; }
    /// Returns the first problem and the number of the others. @param parts of the file, "lines"
    [[nodiscard]] std::string text(const char* parts) const;

 private:
    std::string first_;
    size_t n_ = 0;
};

/// Returns a hash that kvscope wrote: 64 lower-case hexadecimal digits, or "" for an unknown hash.
/// @param key of the hash, for the message @throws UnusableFile for other texts
[[nodiscard]] std::string checked_hash(const std::string& hash, const char* key);

/// Reads a file, and adds its digest. @throws UnusableFile
[[nodiscard]] std::string read_result_file(const std::filesystem::path& file, Imported& imported);

/// Reads a folder of kvpress's evaluation with predictions.csv, metrics.json and config.yaml. kvpress stores no scores
/// of samples, except of needle_in_haystack, so its scorers are applied to the predictions. Files of kvscope contain
/// the scores of other data sets. @throws UnusableFile
void read_kvpress_folder(const std::filesystem::path& folder, Imported& imported);

/// Reads lm-eval's results_<time>.json and the files samples_<task>_<time>.jsonl in the same folder, which contain the
/// scores. @param metric "exact_match" or, with the name of the filter, "exact_match,strict-match"; empty: the first
/// metric and filter of each task @throws UnusableFile
void read_lm_eval_file(const std::filesystem::path& file, const std::string& metric, Imported& imported);

/// Finds and reads results in files and, recursively, in folders. Files that cannot be used are left out.
/// @throws UnusableFile if nothing can be used
[[nodiscard]] Imported read_results(const std::vector<std::filesystem::path>& paths, const std::string& metric = "");

/// Returns the rows of each table of results. Rows are ordered by model and origin, then by samples, then by runs, of
/// which the full run is the first.
[[nodiscard]] std::map<std::string, std::vector<trace::ResultRow>> tables_of_results(const Imported& imported);

}  // namespace kvscope::results
