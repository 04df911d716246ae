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
    std::vector<uint16_t> layers;  ///< (N): layers that keep the token in at least one head
    std::vector<uint16_t> heads;   ///< (N): heads of all layers that keep it
};

TaskResult<PromptCounts> prompt_counts(Session& session, const RunKey& key);

/// "2 of 30 layers, 3 of 90 heads: 0, 4"
std::string where_kept(const trace::Kept& kept, int64_t token);

/// Ground for 0, and from there to `most` the part of the colour map that text can be read on.
MapColors prompt_colors(const Theme& theme, size_t most);

}  // namespace kvscope::gui
