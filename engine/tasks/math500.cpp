#include "engine/tasks/mathematics/answers.h"
#include "engine/tasks/mathematics/problems.h"

namespace kvscope::engine {
namespace math500_file {
namespace {

Scorer accuracy(bool as_kvpress) {
    if (as_kvpress)
        return {"accuracy",
                [](std::string_view prediction, std::span<const std::string> answers) {
                    return mathematics::first_boxed_of_kvpress(prediction) == answers.front() ? 1.0 : 0.0;
                },
                "math500 as in kvpress"};
    return {"accuracy",
            [](std::string_view prediction, std::span<const std::string> answers) {
                const auto boxed = mathematics::boxed_answer(prediction);
                return boxed && mathematics::are_equivalent(*boxed, answers.front()) ? 1.0 : 0.0;
            },
            "math"};
}

void read(const Record& record, TaskSample& sample) {
    sample.context = record.filled_text("problem");
    sample.answers = {record.filled_text("answer")};
    if (record.has_value("subject")) sample.subset = record.text("subject");
}

std::vector<TaskSample> make_samples(const SampleRequest& request) {
    return mathematics::samples_of_problems(request,
                                            {.example = R"({"problem": "…", "answer": "…", "subject": "Algebra"})",
                                             .fetch = "test.jsonl of the Hugging Face dataset HuggingFaceH4/MATH-500",
                                             .instruction = mathematics::asks_for_box,
                                             .read = read,
                                             .scorer = accuracy(request.options.values.text("score_as") == "kvpress")});
}

std::vector<policies::Parameter> parameters() {
    auto all = mathematics::parameters_of_problems("MATH-500's test.jsonl");
    all.push_back(policies::choice_parameter(
        "score_as", {"upstream", "kvpress"}, "upstream",
        "Rules of the scores: those of github.com/hendrycks/math (the last \\boxed{…}, after normalization), or "
        "kvpress's (the text from the first boxed{ to the next }, unchanged)"));
    return all;
}

}  // namespace
}  // namespace math500_file

Task math500_task() {
    using namespace math500_file;
    return {.name = "math500",
            .title = "MATH-500: problems of competitions whose answers are expressions",
            .citation =
                "Hendrycks et al., Measuring Mathematical Problem Solving With the MATH Dataset, NeurIPS 2021, "
                "arXiv:2103.03874; 500 problems of Lightman et al., Let's Verify Step by Step, ICLR 2024, "
                "arXiv:2305.20050. Data: test.jsonl of the Hugging Face dataset HuggingFaceH4/MATH-500 (MATH: "
                "MIT). Layout: one JSON object per line: problem, solution, answer, subject, level, unique_id",
            .parameters = parameters(),
            .needs_file = true,
            .n_new = 2048,
            .scorer = accuracy(false),
            .make_samples = make_samples};
}

}  // namespace kvscope::engine
