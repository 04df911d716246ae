#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "policies/api/parameters.h"

namespace kvscope::engine {

/// Compares a prediction with the accepted answers.
struct Scorer {
    std::string metric;
    std::function<double(std::string_view prediction, std::span<const std::string> answers)> score;  ///< 0 to 1
    std::string scored_as = "ruler";  ///< whose rules the scorer follows, for the column `scored_as` of results
};

/// The scorers of RULER ignore case, white space at the ends of the prediction, and which control character it contains
/// (evaluate.py).
[[nodiscard]] Scorer string_match_all();   ///< share of the answers that the prediction contains
[[nodiscard]] Scorer string_match_part();  ///< 1 if the prediction contains an answer

/// A question about a context, with the accepted answers.
struct TaskSample {
    std::string id{};  ///< unique, as in "niah-1000-0.5-0"
    int number = 0;    ///< unique; does not change if samples are added (CONTRIBUTING.md, adding a task)
    std::string context{};
    std::string question{};
    std::vector<std::string> answers{};
    /// Begin and end of the bytes of `context` that contain the answer; `profile-heads` measures attention to them.
    std::vector<std::pair<size_t, size_t>> spans{};
    int64_t length = 0;  ///< requested tokens of the context; 0: results contain the number of tokens of the prompt
    double depth = std::numeric_limits<double>::quiet_NaN();  ///< NaN if the task has no needle
    std::string subset{};               ///< part of the task, such as "niah_single_1"; empty if the task has no parts
    std::string separator = "\n\n";     ///< text between context and question
    int64_t n_new = 0;                  ///< largest number of answer tokens; 0: the task's number
    int64_t batch = 1;                  ///< equal sequences that are decoded as one batch, if the task measures times
    std::optional<Scorer> scorer = {};  ///< instead of the task's scorer
    bool applies_template = true;       ///< whether the chat template is applied, if the task applies it
    /// Tokens that end the answer, in addition to the model's. If there are any, the first token of an
    /// answer is none of the end tokens.
    std::vector<int32_t> end_ids{};
};

struct TaskOptions {
    policies::ParameterValues values;
    /// Contents of the files that `values` names, by parameter, and of the task's assets, by their names. If a
    /// parameter names a folder, its files are "PARAMETER/FILE" (Task::ending_in_folder).
    std::map<std::string, std::string> files{};
};

struct Task;

struct SampleRequest {
    const Task& task;
    const TaskOptions& options;
    const checkpoint::Tokenizer& tokenizer;
    int64_t context_length = 0;  ///< of the model
    int64_t n_new = 0;           ///< largest number of answer tokens
    std::stop_token stop = {};   ///< after a stop request, make_samples throws Stopped
    /// Gets the reason for each sample that cannot be used. If null, the first such sample throws.
    std::vector<std::string>* left_out = nullptr;
};

/// Calls `add`. If it throws UsageError, the sample is left out (SampleRequest::left_out).
void add_unless_unusable(const SampleRequest& request, const std::function<void()>& add);

/// Throws the first reason in `request.left_out`, if every sample was left out.
void require_samples(const SampleRequest& request, std::span<const TaskSample> samples, const std::string& otherwise);

/// Declaration of a benchmark task. Each file in engine/tasks/ defines one: `Task niah_task()` in niah.cpp.
struct Task {
    std::string name;  ///< "niah", as on the command line and in /results/<task>
    std::string title;
    std::string citation;
    std::vector<policies::Parameter> parameters;
    bool needs_file = false;            ///< whether the parameter `file` must name a file
    bool reads_folder = false;          ///< whether the parameter `file` may name a folder of .jsonl files
    std::string text_folder{};          ///< parameter that may name a folder of .txt files
    int64_t n_new = 0;                  ///< default of the largest number of answer tokens
    std::vector<std::string> assets{};  ///< files of assets/ that make_samples reads from TaskOptions::files
    bool applies_template = true;       ///< whether the model's chat template is applied, unless the user disables it
    Scorer scorer;
    /// Whether times are measured: each run is isolated and answers continue after end-of-text tokens. The first sample
    /// of a command is answered once more before, without results.
    bool measures_time = false;
    /// Whether samples with equal prompts have equal answers. If not, recipes of traces also contain the answers.
    bool text_determines_answers = false;
    /// @throws UsageError for options that give no samples
    std::vector<TaskSample> (*make_samples)(const SampleRequest&) = nullptr;

    /// Returns the ending of the files in a folder that a parameter may name; "" if it may name no folder.
    [[nodiscard]] std::string_view ending_in_folder(std::string_view parameter) const;
};

/// @throws UsageError if a context of one of these lengths, in tokens, and the new tokens exceed the model's context
void require_lengths_fit_context(std::span<const int64_t> lengths, const SampleRequest& request);

/// Returns every task of this build, from all engine/tasks/*.cpp.
[[nodiscard]] const std::vector<Task>& tasks();

/// @throws UsageError for an unknown name, with similar names and all names
[[nodiscard]] const Task& task_named(std::string_view name);

}  // namespace kvscope::engine
