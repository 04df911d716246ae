#pragma once

#include <string>
#include <vector>

#include "analysis/figure_definition.h"
#include "app/gui/session/run_selection.h"

namespace kvscope::gui {

/// What is shown of one open trace.
struct TraceRequest {
    int document = -1;
    analysis::FigureOptions options;  ///< but for its runs
    std::vector<RunId> runs = {};     ///< of the prompt; none: the figure's own choice
};

/// What a view shows, as `export` draws it.
struct FigureRequest {
    int document = -1;
    std::string figure;  ///< analysis::FigureDefinition::name
    analysis::FigureOptions options;
    std::vector<RunId> runs = {};
    std::vector<TraceRequest> others = {};  ///< shown with it (analysis/several_traces.h)
    bool difference = false;                ///< the first less the only other
    bool against_each = false;              ///< whose one run is subtracted from each of the first's

    /// The first is the request's own.
    size_t n_traces() const { return 1 + others.size(); }
    TraceRequest trace(size_t i) const { return i == 0 ? TraceRequest{document, options, runs} : others.at(i - 1); }
};

}  // namespace kvscope::gui
