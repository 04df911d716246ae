#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "engine/tasks/mathematics/answers.h"
#include "engine/tasks/mathematics/problems.h"

namespace kvscope::engine {
namespace aime_file {
namespace {

Scorer accuracy() {
    return {"accuracy",
            [](std::string_view prediction, std::span<const std::string> answers) {
                return std::ranges::count(answers, mathematics::last_boxed_of_kvpress(prediction)) > 0 ? 1.0 : 0.0;
            },
            "aime as in kvpress"};
}

/// Returns the first of the fields that the record has, or the last one.
const char* field_of(const Record& record, std::initializer_list<const char*> names) {
    const auto* const found = std::ranges::find_if(names, [&](const char* name) { return record.has(name); });
    return found == names.end() ? *(names.end() - 1) : *found;
}

/// Returns the ways in which an answer is written: "73" and "073".
std::vector<std::string> spellings_of(const Record& record, const char* field) {
    const auto& value = record.at(field);
    std::string digits = value.is_string() ? value.get<std::string>() : value.is_number_integer() ? value.dump() : "";
    if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos)
        record.refuse(fmt::format("a whole number from 0 to 999 as \"{}\"", field), value);
    const int number = std::stoi(digits);
    std::vector<std::string> spellings{fmt::format("{}", number)};
    if (number < 100) spellings.push_back(fmt::format("{:03}", number));
    return spellings;
}

void read(const Record& record, TaskSample& sample) {
    sample.context = record.filled_text(field_of(record, {"question", "Problem", "problem"}));
    sample.answers = spellings_of(record, field_of(record, {"Answer", "answer"}));
}

std::vector<TaskSample> make_samples(const SampleRequest& request) {
    return mathematics::samples_of_problems(
        request, {.example = R"({"problem": "…", "answer": "73"})",
                  .fetch = "aime2025-I.jsonl or aime2025-II.jsonl of the Hugging Face dataset opencompass/AIME2025, or "
                           "save HuggingFaceH4/aime_2024 as JSONL",
                  .instruction = mathematics::asks_for_box,
                  .read = read,
                  .scorer = accuracy()});
}

}  // namespace
}  // namespace aime_file

Task aime_task() {
    using namespace aime_file;
    return {.name = "aime",
            .title = "AIME: problems of a competition whose answers are numbers from 0 to 999",
            .citation =
                "American Invitational Mathematics Examination (copyright of the Mathematical Association of "
                "America). Data: the Hugging Face datasets opencompass/AIME2025 (aime2025-I.jsonl: question, "
                "answer), HuggingFaceH4/aime_2024 (problem, answer) or Maxwell-Jia/AIME_2024 (Problem, "
                "Answer). Layout: one JSON object per line, or a JSON array of objects; other fields are "
                "ignored. Score: as in kvpress, the text from the last boxed{ to the next } must be the answer; "
                "kvscope accepts 73 and 073",
            .parameters = mathematics::parameters_of_problems("File of AIME's problems (JSONL or JSON)"),
            .needs_file = true,
            .n_new = 4096,
            .scorer = accuracy(),
            .make_samples = make_samples};
}

}  // namespace kvscope::engine
