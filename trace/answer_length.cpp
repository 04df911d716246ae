#include "trace/answer_length.h"

#include <nlohmann/json.hpp>

#include "json/bounded_json.h"

namespace kvscope::trace {

std::optional<std::int64_t> wanted_answer_length(const Reader& reader) {
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    if (!recipe.is_object()) return {};
    const auto found = recipe.find("new_tokens");
    if (found == recipe.end() || !found->is_number_integer()) return {};
    return found->get<std::int64_t>();
}

std::int64_t answer_length(const Reader& reader, int prompt, int run) {
    const Place place = Place::of_run(prompt, run);
    if (!reader.has(place, schema::run::output_ids)) return 0;
    return static_cast<std::int64_t>(reader.shape(place, schema::run::output_ids).at(0));
}

}  // namespace kvscope::trace
