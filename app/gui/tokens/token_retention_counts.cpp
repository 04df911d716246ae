#include "app/gui/tokens/token_retention_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/measures/heads_keeping_token.h"
#include "analysis/tables/number_text.h"
#include "app/gui/tokens/map_key.h"

namespace kvscope::gui {
namespace {

TokenRetentionCounts read_counts(const RunAt& run) {
    TokenRetentionCounts counts;
    counts.kept = run.kept();
    const auto n = static_cast<size_t>(run.reader->prompt(run.prompt).visible_tokens());
    const auto sets = analysis::kept_sets(*counts.kept, n);
    counts.layers = analysis::count_layers_keeping_token(sets);
    counts.heads = analysis::heads_keeping(sets);
    counts.least_layers = analysis::smallest_positive_count(counts.layers);
    counts.least_heads = analysis::smallest_positive_count(counts.heads);
    return counts;
}

std::string ranges(const std::vector<size_t>& numbers) {
    std::string out;
    for (size_t i = 0; i < numbers.size();) {
        size_t j = i;
        while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
        if (!out.empty()) out += ", ";
        out += i == j ? fmt::format("{}", numbers[i]) : fmt::format("{}–{}", numbers[i], numbers[j]);
        i = j + 1;
    }
    return out;
}

}  // namespace

TaskResult<TokenRetentionCounts> token_retention_counts(Session& session, const RunKey& key) {
    static const TaskSlot<TokenRetentionCounts> slot;
    return session.tasks.ask(slot, key.text(), session.stamp(key), [at = session.at(key)](const std::stop_token& stop) {
        return read_counts(at.with_stop(stop));
    });
}

double largest_layer_count_difference(const TokenRetentionCounts& a, const TokenRetentionCounts& b) {
    double farthest = 0;
    for (size_t t = 0; t < std::min(a.layers.size(), b.layers.size()); ++t)
        farthest = std::max(farthest, std::abs(a.layers[t] - b.layers[t]));
    return farthest > 0 ? farthest : 1;
}

std::string describe_where_kept(const trace::Kept& kept, int64_t token) {
    std::vector<size_t> layers;
    size_t n_heads = 0, n_merged = 0, n_rebuilt = 0;
    double entries = 0;
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        size_t here = 0;
        for (size_t r = 0; r < kept.n_rows; ++r) {
            const auto fate = kept.fate(layer, r, static_cast<uint32_t>(token));
            here += fate.is_held();
            if (fate.is_held()) entries += 1.0 / fate.n_tokens;
            n_merged += fate.kind == trace::TokenFate::Kind::merged;
            n_rebuilt += fate.kind == trace::TokenFate::Kind::rebuilt;
        }
        if (here > 0) layers.push_back(layer);
        n_heads += here;
    }
    if (layers.empty()) return "kept nowhere";
    std::string text =
        fmt::format("{} of {} layers, {} of {} heads: {}", layers.size(), kept.n_layers, n_heads,
                    kept.n_layers * kept.n_rows, layers.size() == kept.n_layers ? "all layers" : ranges(layers));
    if (n_merged > 0)
        text += fmt::format("; merged with other tokens in {} heads, {} entries in all", n_merged,
                            analysis::format_number(entries));
    if (n_rebuilt > 0) text += fmt::format("; kept in part and rebuilt in {} heads", n_rebuilt);
    return text;
}

MapColors retention_count_colors(const Theme& theme, size_t most, double least) {
    MapColors colors = count_colors(theme, least < 1 ? 0.999f * static_cast<float>(least) : 1.0f,
                                    static_cast<float>(std::max<size_t>(most, 2)));
    colors.logarithmic = least < 1;
    return colors;
}

}  // namespace kvscope::gui
