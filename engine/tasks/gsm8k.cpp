#include "engine/tasks/mathematics/answers.h"
#include "engine/tasks/mathematics/problems.h"

namespace kvscope::engine {
namespace gsm8k_file {
namespace {

Scorer accuracy() {
    return {"accuracy",
            [](std::string_view prediction, std::span<const std::string> answers) {
                return mathematics::number_after_hashes(prediction) == answers.front() ? 1.0 : 0.0;
            },
            "gsm8k"};
}

void read(const Record& record, TaskSample& sample) {
    sample.context = record.filled_text("question");
    const auto number = mathematics::number_after_hashes(record.filled_text("answer"));
    if (!number) record.refuse(R"(an "answer" that ends with a line such as "#### 18")", record.at("answer"));
    sample.answers = {*number};
}

std::vector<TaskSample> make_samples(const SampleRequest& request) {
    return mathematics::samples_of_problems(
        request, {.example = R"({"question": "…", "answer": "… #### 18"})",
                  .fetch = "grade_school_math/data/test.jsonl of github.com/openai/grade-school-math",
                  .instruction = "Please reason step by step. End your answer with a line that contains only \"#### \" "
                                 "and the number, such as \"#### 42\".",
                  .read = read,
                  .scorer = accuracy()});
}

}  // namespace
}  // namespace gsm8k_file

Task gsm8k_task() {
    using namespace gsm8k_file;
    return {.name = "gsm8k",
            .title = "GSM8K: school problems whose answers are numbers",
            .citation =
                "Cobbe et al., Training Verifiers to Solve Math Word Problems, 2021, arXiv:2110.14168. Data: "
                "grade_school_math/data/test.jsonl of github.com/openai/grade-school-math (MIT; SHA-256 "
                "3730d312f6e3…). Layout: one JSON object per line: question, answer. Score: as in dataset.py there, "
                "the number after the first \"#### \" without commas must have the digits of the answer. The prompt is "
                "the question and kvscope's instruction, because that repository trains models and has none",
            .parameters = mathematics::parameters_of_problems("GSM8K's test.jsonl"),
            .needs_file = true,
            .n_new = 512,
            .scorer = accuracy(),
            .make_samples = make_samples};
}

}  // namespace kvscope::engine
