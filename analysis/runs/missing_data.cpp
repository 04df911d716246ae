#include "analysis/runs/missing_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/drawing/figure_definition.h"
#include "common/bounded_json.h"
#include "engine/options/run_options.h"

namespace kvscope::analysis {

std::string why_data_is_missing(const trace::Reader& reader, const trace::schema::DataSet& data_set) {
    namespace schema = trace::schema;
    static constexpr const schema::DataSet* values_of_tokens[] = {
        &schema::prompt::window_attention, &schema::prompt::query_similarity,
        &schema::prompt::last_logits,      &schema::run::scores,
        &schema::run::answer_attention,    &schema::run::kl_attention_lost};
    engine::RunOptions options;
    engine::read_options_from_recipe(bounded_json::parse_or_discard(reader.recipe_json()), options);
    const bool is_value_of_tokens = std::ranges::find(values_of_tokens, &data_set) != std::end(values_of_tokens);
    if (!options.stores_only_rows() && !(options.stores_only_measures() && is_value_of_tokens)) return {};
    return fmt::format(". The trace stores only {} (--record {}): make it again with --record full",
                       options.stores_only_rows() ? "rows of results" : "measures", options.stored);
}

void require_data(const trace::Reader& reader, trace::Place place, const trace::schema::DataSet& data_set) {
    if (reader.has_model() && reader.has(place, data_set)) return;
    const std::string where = place.prompt < 0 ? "the model" : fmt::format("prompt {}", place.prompt);
    throw NothingToShow(fmt::format("{}: {} has no {}, which this figure needs{}", reader.path().string(), where,
                                    data_set.path, why_data_is_missing(reader, data_set)));
}

}  // namespace kvscope::analysis
