#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "common/bounded_json.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/task.h"

namespace kvscope::engine {
namespace jsonl_file {
namespace {

/// Returns a JSON value as text for an error message, cut after 60 bytes.
std::string found_text(const nlohmann::json& value) {
    return value.is_discarded() ? "text that is not JSON" : utf8_lossy(value.dump().substr(0, 60));
}

bool is_filled_text(const nlohmann::json& value) {
    return value.is_string() && value.get_ref<const std::string&>().find_first_not_of(" \t\r\n") != std::string::npos;
}

/// @param line for messages, such as "samples.jsonl:3"
TaskSample read_sample(std::string_view text, const std::string& line) {
    const auto object = bounded_json::parse_or_discard(text);
    const auto require = [&](bool is_valid, const char* expected, const nlohmann::json& found) {
        if (!is_valid) throw UsageError(fmt::format("{}: expected {}, found {}", line, expected, found_text(found)));
    };
    require(object.is_object(), R"(an object such as {"context": "…", "question": "…", "answers": ["…"]})", object);
    for (const char* field : {"context", "question", "answers"})
        require(object.contains(field), fmt::format("the field \"{}\"", field).c_str(), object);
    for (const char* field : {"context", "question"}) {
        const auto& value = object[field];
        require(is_filled_text(value), fmt::format("a text that is not blank as \"{}\"", field).c_str(), value);
    }
    const auto& answers = object["answers"];
    require(answers.is_array() && !answers.empty() && std::all_of(answers.begin(), answers.end(), is_filled_text),
            "a list of texts that are not blank as \"answers\"", answers);
    return {.context = object["context"], .question = object["question"], .answers = answers};
}

std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const std::string& file = values.text("file");
    if (file.empty()) throw UsageError("the task jsonl needs a file: name one with --file");
    const auto most = values.automatic_integer("samples");
    std::vector<TaskSample> samples;
    std::string_view text = request.options.files.at("file");
    for (int line = 1; !text.empty() && (!most || static_cast<int64_t>(samples.size()) < *most); ++line) {
        const std::string_view one = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), one.size() + 1));
        if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        TaskSample sample = read_sample(one, fmt::format("{}:{}", file, line));
        sample.id = fmt::format("{}-{}", utf8_lossy(std::filesystem::path(file).stem().string()), line);
        sample.number = line - 1;
        for (const std::string& answer : sample.answers) {
            const size_t at = sample.context.find(answer);
            if (at != std::string::npos) sample.spans.emplace_back(at, at + answer.size());
        }
        samples.push_back(std::move(sample));
    }
    if (samples.empty()) throw UsageError(file + ": expected one JSON object per line, found no line with text");
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
