#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/drawing/heat_map.h"
#include "app/gui/drawing/theme.h"
#include "app/gui/session/session.h"
#include "app/gui/session/tasks.h"
#include "trace/reader.h"

namespace kvscope::gui {

/// How many layers and heads of a run keep each token.
struct TokenRetentionCounts {
    std::shared_ptr<const trace::Kept> kept;
    std::vector<double> layers;  ///< (N) number of layers that keep the token, analysis::count_layers_keeping_token
    std::vector<double> heads;   ///< (N) number of heads in all layers that keep the token, analysis::heads_keeping
    /// Smallest counts above zero, limited to 1. Counts below 1 occur if tokens share entries.
    double least_layers = 1, least_heads = 1;
};

[[nodiscard]] TaskResult<TokenRetentionCounts> token_retention_counts(Session& session, const RunKey& key);

/// Returns the largest difference between A and B in the number of layers that keep a token, or 1 for no difference.
[[nodiscard]] double largest_layer_count_difference(const TokenRetentionCounts& a, const TokenRetentionCounts& b);

/// Describes where a token is kept, e.g. "2 of 30 layers, 3 of 90 heads: 0, 4".
[[nodiscard]] std::string describe_where_kept(const trace::Kept& kept, int64_t token);

/// Returns the colors of the counts. Zero has the background color. The scale is logarithmic if `least` is below 1.
[[nodiscard]] MapColors retention_count_colors(const Theme& theme, size_t most, double least);

}  // namespace kvscope::gui
