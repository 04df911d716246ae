#include "policies/bases/echo_policy.h"

#include <algorithm>
#include <utility>

#include "policies/methods/echo_encoder.h"

namespace kvscope::policies {

EchoPolicy::EchoPolicy(std::string name, const ParameterValues& values)
    : name_(std::move(name)),
      path_(values.text("maps")),
      sinks_(values.integer("sinks")),
      recent_(values.integer("recent")),
      form_(values.text("form")),
      switches_(values.text("switches")) {}

void EchoPolicy::begin(const RunContext& context) {
    switching_ = parse_storage_switching(form_, switches_);
    const EchoMaps maps = read_echo_maps_for_model(name_, path_, context);
    layout_ = maps.layout;
    context_ = context;
    first_ = std::min<int64_t>(sinks_, context.n_tokens);
    end_ = switching_.begins_full ? first_ : std::max<int64_t>(context.n_tokens - recent_, first_);
    take(maps);
}

std::optional<WholeTokens> EchoPolicy::whole_tokens(int layer) const {
    if (!describes(layer)) return std::nullopt;
    return WholeTokens{sinks_, recent_};
}

Selection EchoPolicy::all_tokens(LayerObservations& observations) {
    Selection selection = select_all_tokens(context_);
    if (!stores_parts() || !describes(observations.layer)) return selection;
    const auto& all = selection.rows[0];
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(end_);
    StoredLayer stored =
        described(observations.layer, {first, end}, observations.keys_before_rope, observations.values, first_);
    for (StoredRow& row : stored.rows) {
        row.plain.assign(all.begin(), first);
        row.plain.insert(row.plain.end(), end, all.end());
    }
    selection.stored = std::move(stored);
    return selection;
}

double echo_needed_share(const ParameterValues& values, double asked, const CacheSize& size) {
    const int64_t exact = std::min(values.integer("sinks") + values.integer("recent"), size.n_tokens);
    return asked + (1.0 - asked) * static_cast<double>(exact) / static_cast<double>(size.n_tokens);
}

}  // namespace kvscope::policies
