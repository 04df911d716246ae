#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Title above one of several traces that are drawn side by side.
struct CellTitle {
    std::string text;                 ///< replaces or follows the trace's name; empty: only the name
    const Document* trace = nullptr;  ///< trace whose badge and name are shown; nullptr: none
};

/// Returns the traces' names, "A − B" for a difference, or nothing for a single trace.
std::vector<CellTitle> cell_titles(const Session& session, const FigureRequest& request);

/// Draws a child window for each title, side by side, or stacked if there is more height than width.
void draw_trace_cells(const Context& context, const char* id, ImVec2 size, const std::vector<CellTitle>& titles,
                      const std::function<void(size_t)>& draw);

}  // namespace kvscope::gui
