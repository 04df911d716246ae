#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// What stands above a part of a view that shows the request's traces side by side.
struct CellTitle {
    std::string text;                 ///< in place of, or after, the trace's name; empty: nothing
    const Document* trace = nullptr;  ///< with its badge and name; nullptr: no trace
};

/// Their names, "A − B" with both for a difference, nothing for one trace alone.
std::vector<CellTitle> cell_titles(const Session& session, const FigureRequest& request);

/// As many parts beside each other (below each other where there is more height) as there are titles, each drawn in a
/// child window of its own. @param size as for child windows
void draw_trace_cells(const Context& context, const char* id, ImVec2 size, const std::vector<CellTitle>& titles,
                      const std::function<void(size_t)>& draw);

}  // namespace kvscope::gui
