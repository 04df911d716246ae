#include "analysis/results/questions_of_samples.h"

#include "common/bounded_json.h"

namespace kvscope::analysis {

QuestionsOfSamples questions_of_samples(const trace::Reader& reader) {
    QuestionsOfSamples questions;
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    if (!recipe.is_object()) return questions;
    for (const char* list : {"prompts", "questions"}) {
        const auto entries = recipe.find(list);
        if (entries == recipe.end() || !entries->is_array()) continue;
        for (const auto& entry : *entries) {
            const auto text = [&](const char* key) {
                const auto found = entry.is_object() ? entry.find(key) : entry.end();
                return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
            };
            const bool is_seen = !entry.is_object() || !entry.contains("query_aware") || entry["query_aware"] == true;
            questions[{text("name"), is_seen}] = text("question");
        }
    }
    return questions;
}

nlohmann::ordered_json json_of_questions(const QuestionsOfSamples& questions) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [sample, question] : questions)
        list.push_back({{"name", sample.first}, {"query_aware", sample.second}, {"question", question}});
    return list;
}

}  // namespace kvscope::analysis
