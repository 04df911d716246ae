#include "engine/tasks/api/task.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "common/stopped.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "policies/registry/name_matching.h"

namespace kvscope::engine {
namespace {

std::string in_lower_case(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const auto character = decode_utf8_character(text, at);
        append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character.code))));
        at += character.bytes;
    }
    return out;
}

/// Returns the text in lower case, with control characters as line feeds, and without white space at the ends.
std::string cleaned(std::string_view prediction) {
    std::string text;
    size_t end = 0;  // after the last character that is no white space
    for (size_t at = 0; at < prediction.size();) {
        const auto character = decode_utf8_character(prediction, at);
        const bool is_space = character.code < 0x20 || is_white_space(character.code);
        if (character.code < 0x20)
            text += text.empty() ? "" : "\n";
        else if (!is_space || !text.empty())
            text += prediction.substr(at, character.bytes);
        if (!is_space) end = text.size();
        at += character.bytes;
    }
    return in_lower_case(std::string_view(text).substr(0, end));
}

std::ptrdiff_t number_of_answers_in(std::string_view prediction, std::span<const std::string> answers) {
    return std::ranges::count_if(answers, [text = cleaned(prediction)](const std::string& answer) {
        return text.find(in_lower_case(answer)) != std::string::npos;
    });
}

}  // namespace

Scorer string_match_all() {
    return {"string_match_all", [](std::string_view prediction, std::span<const std::string> answers) {
                return static_cast<double>(number_of_answers_in(prediction, answers)) /
                       static_cast<double>(answers.size());
            }};
}

Scorer string_match_part() {
    return {"string_match_part", [](std::string_view prediction, std::span<const std::string> answers) {
                return number_of_answers_in(prediction, answers) > 0 ? 1.0 : 0.0;
            }};
}

void add_unless_unusable(const SampleRequest& request, const std::function<void()>& add) {
    throw_if_stopped(request.stop);
    try {
        add();
    } catch (const UsageError& error) {
        if (!request.left_out) throw;
        request.left_out->emplace_back(error.what());
    }
}

void require_samples(const SampleRequest& request, std::span<const TaskSample> samples, const std::string& otherwise) {
    if (!samples.empty()) return;
    throw UsageError(request.left_out && !request.left_out->empty() ? request.left_out->front() : otherwise);
}

std::string_view Task::ending_in_folder(std::string_view parameter) const {
    if (reads_folder && parameter == "file") return ".jsonl";
    return !text_folder.empty() && parameter == text_folder ? ".txt" : "";
}

const Task& task_named(std::string_view name) {
    std::vector<std::string> names;
    for (const Task& task : tasks()) {
        if (policies::same_name(task.name, name)) return task;
        names.push_back(task.name);
    }
    throw UsageError(fmt::format("unknown task '{}'.{} Tasks: {}", name, policies::did_you_mean(name, names),
                                 policies::joined(names)));
}

void require_lengths_fit_context(std::span<const int64_t> lengths, const SampleRequest& request) {
    const int64_t largest = std::max<int64_t>(request.context_length - request.n_new, 0);
    for (const int64_t length : lengths) {
        if (length <= largest) continue;
        throw UsageError(
            fmt::format("--lengths {}: the model's context is {}, of which {} are for new tokens, so at most "
                        "{} are left for the prompt",
                        length, request.context_length, request.n_new, largest));
    }
}

}  // namespace kvscope::engine
