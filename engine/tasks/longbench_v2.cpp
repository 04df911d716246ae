#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"
#include "engine/tasks/api/record.h"
#include "engine/tasks/longbench/middle_cut.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/scorers.h"

namespace kvscope::engine {
namespace longbench_v2_file {
namespace {

// prompts/0shot.txt, cut after the document
constexpr std::string_view format_of_context =
    "Please read the following text and answer the question below.\n\n<text>\n$DOC$";
constexpr std::string_view format_of_question =
    "\n</text>\n\nWhat is the correct answer to this question: $Q$\nChoices:\n(A) $C_A$\n(B) $C_B$\n(C) $C_C$\n(D) "
    "$C_D$\n\nFormat your response as follows: \"The correct answer is (insert answer here)\".";
constexpr std::pair<std::string_view, const char*> fields[] = {{"$DOC$", "context"},  {"$Q$", "question"},
                                                               {"$C_A$", "choice_A"}, {"$C_B$", "choice_B"},
                                                               {"$C_C$", "choice_C"}, {"$C_D$", "choice_D"}};
constexpr std::string_view choices = "ABCD";
constexpr int64_t n_answer_tokens = 128;

Scorer accuracy() {
    return {"accuracy",
            [](std::string_view prediction, std::span<const std::string> answers) {
                const auto letter = longbench::chosen_letter(prediction);
                return letter && answers.front() == std::string(1, *letter) ? 1.0 : 0.0;
            },
            "longbench-v2"};
}

TaskSample sample_of(const SampleRequest& request, std::string_view element, int number, const std::string& place) {
    const Record record(element, place, R"({"question": "…", "choice_A": "…", "answer": "A", "context": "…"})");
    TaskSample sample;
    sample.answers = {record.filled_text("answer")};
    if (sample.answers.front().size() != 1 || choices.find(sample.answers.front()) == std::string_view::npos)
        record.refuse("A, B, C or D as \"answer\"", record.at("answer"));
    longbench::TwoPartPrompt prompt{std::string(format_of_context), std::string(format_of_question)};
    // Later fields are also inserted into the text of earlier ones, as in pred.py.
    for (const auto& [pattern, field] : fields) {
        const std::string_view text = longbench::stripped(record.text(field));
        longbench::replace_all(prompt.context, pattern, text);
        longbench::replace_all(prompt.question, pattern, text);
    }
    sample.number = number - 1;
    sample.subset = fmt::format("{}/{}", record.filled_text("difficulty"), record.filled_text("length"));
    sample.n_new = longbench::n_new_of(request, n_answer_tokens);
    prompt = longbench::cut_in_the_middle(request, std::move(prompt), longbench::max_length_of(request, sample.n_new),
                                          longbench::Halves::decoded_together);
    sample.context = std::move(prompt.context);
    sample.question = std::move(prompt.question);
    sample.separator = "";
    return sample;
}

/// Returns the samples "<file>-<number>", in the order of the file.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const std::string& file = values.text("file");
    if (file.empty())
        throw UsageError(
            "the task longbench-v2 needs LongBench-v2's data: fetch data.json of the Hugging Face dataset "
            "THUDM/LongBench-v2, put it anywhere, and name it with --file");
    const std::string& text = request.options.files.at("file");
    refuse_other_benchmark(text, file, request.task.name);
    const std::string stem = utf8_lossy(std::filesystem::path(file).stem().string());
    const auto most = values.automatic_integer("samples");
    std::vector<TaskSample> samples;
    for_each_element(text, [&](std::string_view element, int number, int line) {
        if (most && number > *most) return false;
        add_unless_unusable(request, [&] {
            samples.push_back(sample_of(request, element, number, fmt::format("{}:{}", file, line)));
            samples.back().id = fmt::format("{}-{}", stem, number);
        });
        return true;
    });
    require_samples(request, samples, file + ": expected a JSON array of objects, found none");
    return samples;
}

}  // namespace
}  // namespace longbench_v2_file

Task longbench_v2_task() {
    using namespace longbench_v2_file;
    using namespace policies;
    return {
        .name = "longbench-v2",
        .title = "LongBench-v2: questions with four choices about long texts",
        .citation =
            "Bai et al., LongBench v2: Towards Deeper Understanding and Reasoning on Realistic Long-context "
            "Multitasks, ACL 2025, arXiv:2412.15204. Data: file data.json of the Hugging Face dataset "
            "THUDM/LongBench-v2 (Apache-2.0). Layout: one JSON array of objects: _id, domain, sub_domain, difficulty, "
            "length, question, choice_A, choice_B, choice_C, choice_D, answer, context",
        .parameters = {file_parameter("file", "LongBench-v2's data.json"),
                       automatic_integer_parameter("samples", "all records", {.low = 1, .high = 100000},
                                                   "Number of samples, from the first record on"),
                       longbench::max_length_parameter()},
        .needs_file = true,
        .n_new = n_answer_tokens,
        .scorer = accuracy(),
        .make_samples = make_samples};
}

}  // namespace kvscope::engine
