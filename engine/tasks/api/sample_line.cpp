#include "engine/tasks/api/sample_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/bounded_json.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"

namespace kvscope::engine {
namespace {

/// Returns a JSON value as text for an error message, cut after 60 bytes.
std::string found_text(const nlohmann::json& value) {
    return value.is_discarded() ? "text that is not JSON" : utf8_lossy(value.dump().substr(0, 60));
}

std::string names_of_fields(const nlohmann::json& object) {
    std::string names;
    for (const auto& [name, value] : object.items()) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
    return names.empty() ? "no field" : "only " + utf8_lossy(names.substr(0, 200));
}

bool is_filled_text(const nlohmann::json& value) {
    return value.is_string() && value.get_ref<const std::string&>().find_first_not_of(" \t\r\n") != std::string::npos;
}

}  // namespace

TaskSample read_sample_line(std::string_view text, const std::string& place, LineNeeds needs) {
    const auto object = bounded_json::parse_or_discard(text);
    const auto require = [&](bool is_valid, const std::string& expected, const auto& found) {
        if (!is_valid) throw UsageError(fmt::format("{}: expected {}, found {}", place, expected, found()));
    };
    const auto require_value = [&](bool is_valid, const char* expected, const nlohmann::json& found) {
        require(is_valid, expected, [&] { return found_text(found); });
    };
    require_value(object.is_object(), R"(an object such as {"context": "…", "question": "…", "answers": ["…"]})",
                  object);
    const auto has = [&](const char* field) {
        const bool is_needed = needs == LineNeeds::question_and_answers || std::string_view(field) == "context";
        if (!is_needed) return object.contains(field) && !object[field].empty() && object[field] != "";
        require(object.contains(field), fmt::format("the field \"{}\"", field),
                [&] { return names_of_fields(object); });
        return true;
    };
    TaskSample sample;
    for (const auto& [field, value] :
         {std::pair("context", &sample.context), std::pair("question", &sample.question)}) {
        if (!has(field)) continue;
        require_value(is_filled_text(object[field]), fmt::format("a text that is not blank as \"{}\"", field).c_str(),
                      object[field]);
        *value = object[field];
    }
    if (!has("answers")) return sample;
    const auto& answers = object["answers"];
    require_value(answers.is_array() && !answers.empty() && std::ranges::all_of(answers, is_filled_text),
                  "a list of texts that are not blank as \"answers\"", answers);
    sample.answers = answers;
    return sample;
}

void for_each_line_with_text(std::string_view text, const std::function<bool(std::string_view line, int number)>& use) {
    for (int number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.find_first_not_of(" \t\r") != std::string_view::npos && !use(line, number)) return;
    }
}

}  // namespace kvscope::engine
