#include "engine/tasks/api/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/lower_case.h"
#include "engine/common/engine_error.h"
#include "policies/registry/name_matching.h"

namespace kvscope::engine {
namespace {

std::ptrdiff_t number_of_answers_in(std::string_view prediction, std::span<const std::string> answers) {
    return std::ranges::count_if(answers, [text = lower_case(prediction)](const std::string& answer) {
        return text.find(lower_case(answer)) != std::string::npos;
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

const Task& task_named(std::string_view name) {
    std::vector<std::string> names;
    for (const Task& task : tasks()) {
        if (policies::same_name(task.name, name)) return task;
        names.push_back(task.name);
    }
    throw UsageError(fmt::format("unknown task '{}'.{} Tasks: {}", name, policies::did_you_mean(name, names),
                                 policies::joined(names)));
}

}  // namespace kvscope::engine
