#include <fmt/format.h>

#include "analysis/head_divergence.h"
#include "analysis/ranking.h"

namespace kvscope::analysis {
namespace {

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    require_head_divergence(reader, options.prompt);
    if (reader.model().n_kv_heads < 2)
        throw NothingToShow(fmt::format(
            "{}: the model has only one KV head per layer, so there are no heads to compare", reader.path().string()));
    RankingRows rows(SubjectTable(
        "heads", "KV heads ranked by their mean Jensen-Shannon divergence from the other heads of their layer",
        {SubjectKey::layer, SubjectKey::head, Column{"divergence", "Divergence", "nats", ColumnType::real, 4}}));
    for (const int layer : chosen_layers(reader, options)) {
        const auto divergences = mean_head_divergences_of_layer(reader, options.prompt, static_cast<size_t>(layer));
        for (size_t head = 0; head < divergences.size(); ++head)
            rows.add({{.layer = layer, .head = static_cast<int>(head)}}, divergences[head], {divergences[head]});
    }
    return rows.take();
}

}  // namespace

FigureDefinition heads_figure() {
    return define_ranking<make>(
        "heads", "Heads that differ most",
        "KV heads ranked by the mean Jensen-Shannon divergence of their attention from the other heads of their layer",
        {{"layers", "default: all"}});
}

}  // namespace kvscope::analysis
