#include "engine/tasks/api/sample_line.h"

#include <algorithm>
#include <string_view>

#include "engine/tasks/api/record.h"

namespace kvscope::engine {

TaskSample read_sample_line(std::string_view text, const std::string& place, LineNeeds needs) {
    const Record record(text, place, R"({"context": "…", "question": "…", "answers": ["…"]})");
    const bool needs_all = needs == LineNeeds::question_and_answers;
    TaskSample sample;
    sample.context = record.filled_text("context");
    if (needs_all || record.has_value("question")) sample.question = record.filled_text("question");
    if (needs_all || record.has_value("answers")) sample.answers = record.filled_texts("answers");
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
