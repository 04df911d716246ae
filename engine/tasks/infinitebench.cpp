#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"
#include "engine/tasks/api/record.h"
#include "engine/tasks/api/sample_line.h"
#include "engine/tasks/api/set_files.h"
#include "engine/tasks/infinitebench/sets.h"
#include "engine/tasks/longbench/middle_cut.h"

namespace kvscope::engine {
namespace infinitebench_file {
namespace {

using infinitebench::Set;

TaskSample sample_of(const SampleRequest& request, const SetFile& file, std::string_view line, int number) {
    const Set& set = infinitebench::sets()[file.set];
    const Record record(line, fmt::format("{}:{}", file.shown, number),
                        R"({"context": "…", "input": "…", "answer": ["…"], "options": []})");
    TaskSample sample;
    sample.id = fmt::format("{}-{}", file.stem, number);
    sample.number = file.number_of_sample(number);
    sample.subset = set.name;
    sample.answers = set.answers_of(record);
    sample.n_new = longbench::n_new_of(request, set.n_new);
    auto prompt =
        longbench::cut_in_the_middle(request, set.prompt_of(record), longbench::max_length_of(request, sample.n_new),
                                     longbench::Halves::of_equal_size_decoded_together);
    sample.context = std::move(prompt.context);
    sample.question = std::move(prompt.question);
    if (set.is_retrieval()) sample.spans = places_of(sample.answers.front(), sample.context);
    sample.separator = "";
    sample.scorer = set.scorer(request.options.values.text("score_as") == "kvpress");
    return sample;
}

/// Returns the samples "<file>-<line>", ordered by line, then by set.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    if (values.text("file").empty())
        throw UsageError(
            "the task infinitebench needs InfiniteBench's data: fetch the files such as passkey.jsonl of the Hugging "
            "Face dataset xinrongzhang2022/InfiniteBench, put them into any folder, and name the folder, or one file, "
            "with --file");
    const auto most = values.automatic_integer("samples");
    std::vector<TaskSample> samples;
    for (const SetFile& file : files_of_sets(request, infinitebench::names_of_sets())) {
        refuse_other_benchmark(file.text, file.shown, request.task.name);
        for_each_line_with_text(file.text, [&](std::string_view line, int number) {
            if (most && number > *most) return false;
            add_unless_unusable(request, [&] { samples.push_back(sample_of(request, file, line, number)); });
            return true;
        });
    }
    require_samples(request, samples, values.text("file") + ": expected one JSON object per line, found none");
    std::ranges::sort(samples, {}, &TaskSample::number);
    return samples;
}

}  // namespace
}  // namespace infinitebench_file

Task infinitebench_task() {
    using namespace infinitebench_file;
    using namespace policies;
    return {
        .name = "infinitebench",
        .title = "InfiniteBench: 12 sets of texts of 100,000 tokens: retrieval, books, dialogues, code and arithmetic",
        .citation =
            "Zhang et al., ∞Bench: Extending Long Context Evaluation Beyond 100K Tokens, ACL 2024, arXiv:2402.13718. "
            "Data: the .jsonl files of the Hugging Face dataset xinrongzhang2022/InfiniteBench (code and prompts: "
            "MIT; each set has the licence of its source). Layout: one file per set, such as passkey.jsonl, with one "
            "JSON object per line: id, context, input, answer, options. Prompts: those of github.com/OpenBMB/"
            "InfiniteBench for models without chat template. The middle of a long prompt is removed",
        .parameters = {file_parameter("file",
                                      "Folder of InfiniteBench's .jsonl files, or one file, which needs less memory"),
                       subsets_parameter(infinitebench::names_of_sets()),
                       automatic_integer_parameter("samples", "all lines", {.low = 1, .high = 100000},
                                                   "Number of samples per file, from the first line on"),
                       longbench::max_length_parameter(),
                       choice_parameter(
                           "score_as", {"upstream", "kvpress"}, "upstream",
                           "Rules of the scores: those of InfiniteBench's compute_scores.py, or kvpress's, which "
                           "differ for longdialogue_qa_eng, longbook_choice_eng and code_debug")},
        .needs_file = true,
        .reads_folder = true,
        .n_new = 256,
        .applies_template = false,
        .scorer = infinitebench::sets().front().scorer(false),
        .make_samples = make_samples};
}

}  // namespace kvscope::engine
