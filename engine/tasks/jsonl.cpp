#include <fmt/format.h>

#include <filesystem>

#include "common/find_phrases.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"
#include "engine/tasks/api/sample_line.h"

namespace kvscope::engine {
namespace jsonl_file {
namespace {

std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const std::string& file = values.text("file");
    if (file.empty()) throw UsageError("the task jsonl needs a file: name one with --file");
    const auto most = values.automatic_integer("samples");
    const std::string& text = request.options.files.at("file");
    refuse_other_benchmark(text, file, request.task.name);
    std::vector<TaskSample> samples;
    for_each_line_with_text(text, [&](std::string_view line, int number) {
        if (most && static_cast<int64_t>(samples.size()) >= *most) return false;
        add_unless_unusable(request, [&] {
            const std::string place = fmt::format("{}:{}", file, number);
            TaskSample sample = read_sample_line(line, place, LineNeeds::question_and_answers);
            sample.id = fmt::format("{}-{}", utf8_lossy(std::filesystem::path(file).stem().string()), number);
            sample.number = number - 1;
            sample.spans = find_phrases(sample.context, sample.answers);
            samples.push_back(std::move(sample));
        });
        return true;
    });
    require_samples(request, samples, file + ": expected one JSON object per line, found no line with text");
    return samples;
}

}  // namespace
}  // namespace jsonl_file

Task jsonl_task() {
    using namespace jsonl_file;
    using namespace policies;
    return {.name = "jsonl",
            .title = "Samples of your own, one JSON object with context, question and answers per line",
            .citation = "no publication; scored as in RULER, where one of several answers suffices",
            .parameters = {file_parameter("file", "File of the samples"),
                           automatic_integer_parameter("samples", "all lines", {.low = 1, .high = 100000},
                                                       "Number of samples, from the first line on")},
            .needs_file = true,
            .n_new = 64,
            .scorer = string_match_part(),
            .make_samples = make_samples};
}

}  // namespace kvscope::engine
