#include "engine/tasks/mathematics/problems.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"

namespace kvscope::engine::mathematics {

std::vector<TaskSample> samples_of_problems(const SampleRequest& request, const ProblemSet& set) {
    const auto& values = request.options.values;
    const std::string& file = values.text("file");
    if (file.empty())
        throw UsageError(
            fmt::format("the task {} needs its problems: fetch {}, put the file anywhere, and name it "
                        "with --file",
                        request.task.name, set.fetch));
    const std::string& text = request.options.files.at("file");
    refuse_other_benchmark(text, file, request.task.name);
    const std::string stem = utf8_lossy(std::filesystem::path(file).stem().string());
    const auto most = values.automatic_integer("samples");
    std::vector<TaskSample> samples;
    for_each_record(text, [&](std::string_view record, int number, int line) {
        if (most && number > *most) return false;
        add_unless_unusable(request, [&] {
            TaskSample sample;
            set.read(Record(record, fmt::format("{}:{}", file, line), set.example), sample);
            sample.id = fmt::format("{}-{}", stem, number);
            sample.number = number - 1;
            sample.question = set.instruction;
            sample.scorer = set.scorer;
            samples.push_back(std::move(sample));
        });
        return true;
    });
    require_samples(request, samples, fmt::format("{}: expected objects such as {}, found none", file, set.example));
    return samples;
}

std::vector<policies::Parameter> parameters_of_problems(std::string_view file_help) {
    return {policies::file_parameter("file", std::string(file_help)),
            policies::automatic_integer_parameter("samples", "all problems", {.low = 1, .high = 100000},
                                                  "Number of samples, from the first problem on")};
}

}  // namespace kvscope::engine::mathematics
