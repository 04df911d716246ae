#pragma once

#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "app/gui/session/selection.h"

namespace kvscope::gui {

struct TraceRequest {
    int document = -1;
    analysis::FigureOptions options;  ///< without the runs
    std::vector<RunId> runs = {};     ///< runs of the prompt; empty: the figure's default
};

/// A figure that a view shows and `kvscope export` can draw.
struct FigureRequest {
    int document = -1;
    std::string figure;  ///< see analysis::FigureDefinition::name
    analysis::FigureOptions options;
    std::vector<RunId> runs = {};
    std::vector<TraceRequest> others = {};  ///< further traces in the figure (see analysis/figures_of_several_traces.h)
    bool difference = false;                ///< show the first trace minus the only other trace
    bool against_each = false;              ///< subtract the only run of the second trace from each run of the first

    [[nodiscard]] size_t n_traces() const { return 1 + others.size(); }
    [[nodiscard]] TraceRequest trace(size_t i) const {
        return i == 0 ? TraceRequest{document, options, runs} : others.at(i - 1);
    }
};

}  // namespace kvscope::gui
