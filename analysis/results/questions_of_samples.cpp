#include "analysis/results/questions_of_samples.h"

#include "common/bounded_json.h"
#include "common/json.h"

namespace kvscope::analysis {

QuestionsOfSamples questions_of_samples(const trace::Reader& reader) {
    QuestionsOfSamples questions;
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    const auto prompts = recipe.is_object() ? recipe.find("prompts") : recipe.end();
    if (prompts == recipe.end() || !prompts->is_array()) return questions;
    for (const auto& entry : *prompts) {
        const auto text = [&](const char* key) {
            const auto found = entry.is_object() ? entry.find(key) : entry.end();
            return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
        };
        const bool is_seen = !entry.is_object() || !entry.contains("query_aware") || entry["query_aware"] == true;
        questions[{text("name"), is_seen}] = text("question");
    }
    return questions;
}

}  // namespace kvscope::analysis
