#pragma once

#include <string_view>
#include <vector>

#include "engine/tasks/api/record.h"
#include "engine/tasks/api/task.h"

namespace kvscope::engine::mathematics {

/// How a task reads the problems of its file, and what it asks.
struct ProblemSet {
    std::string_view example;      ///< of a record, for messages
    std::string_view fetch;        ///< the file's source, for the message without a file: "test.jsonl of …"
    std::string_view instruction;  ///< the question, which follows the problem and an empty line
    /// Sets the problem as context, and the answers. @throws UsageError if the record has none
    void (*read)(const Record& record, TaskSample& sample);
    Scorer scorer;
};

/// Makes one sample "<file>-<number>" of each record of the parameter `file`, up to the number `samples`.
/// @throws UsageError for a missing file, a file of another benchmark, and a file without samples
[[nodiscard]] std::vector<TaskSample> samples_of_problems(const SampleRequest& request, const ProblemSet& set);

/// The parameters `file` and `samples`. @param file_help such as "GSM8K's test.jsonl"
[[nodiscard]] std::vector<policies::Parameter> parameters_of_problems(std::string_view file_help);

inline constexpr std::string_view asks_for_box =
    "Please reason step by step, and put your final answer within \\boxed{}.";

}  // namespace kvscope::engine::mathematics
