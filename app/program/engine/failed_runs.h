#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "app/program/engine/prepared_job.h"
#include "trace/reader.h"

namespace kvscope::program {

/// Reports each failed run once. For a task, a reason is reported once per policy and budget, not once per sample.
class FailedRuns {
 public:
    FailedRuns(const PreparedJob& prepared, std::function<void(const std::string&)> warn)
        : prepared_(prepared), warn_(std::move(warn)) {}

    void report(int prompt, int run, const std::string& name, const trace::RunAttributes& attributes);
    /// @param rows of one sample, one per plan
    void report(const std::string& sample, std::span<const trace::ResultRow> rows);
    /// Reports the failed runs of a finished trace and returns their number.
    [[nodiscard]] int report_all(const trace::Reader& reader);

 private:
    [[nodiscard]] int report_all_samples(std::span<const trace::ResultRow> rows);

    const PreparedJob& prepared_;
    std::function<void(const std::string&)> warn_;
    std::set<std::pair<int, int>> reported_;
    std::set<std::pair<std::size_t, std::string>> reported_of_samples_;
};

}  // namespace kvscope::program
