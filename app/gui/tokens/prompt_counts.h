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

/// What one run kept, token by token.
struct PromptCounts {
    std::shared_ptr<const trace::Kept> kept;
    std::vector<double> layers;  ///< (N): layers that keep the token, analysis::layers_keeping
    std::vector<double> heads;   ///< (N): heads of all layers that keep it, analysis::heads_keeping
    /// The smallest of these but 0, at most 1: smaller where tokens share entries.
    double least_layers = 1, least_heads = 1;
};

TaskResult<PromptCounts> prompt_counts(Session& session, const RunKey& key);

/// How far a token's layers of A lie from those of B at most; 1 where no token differs
double farthest_difference(const PromptCounts& a, const PromptCounts& b);

/// "2 of 30 layers, 3 of 90 heads: 0, 4"
std::string where_kept(const trace::Kept& kept, int64_t token);

/// Ground for 0, and from `least` to `most` the part of the colour map that text can be read on.
/// @param least 1, or below it where tokens share entries: then logarithmic
MapColors prompt_colors(const Theme& theme, size_t most, double least);

}  // namespace kvscope::gui
