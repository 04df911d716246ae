#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// What stands above the parts of a view that shows the request's traces side by side: their names, "A − B" with both
/// for a difference, nothing for one trace alone.
std::vector<std::string> cell_titles(const Session& session, const FigureRequest& request);

/// As many parts beside each other (below each other where there is more height) as there are titles, each drawn in a
/// child window of its own. @param size as for child windows
void draw_trace_cells(const Context& context, const char* id, ImVec2 size, const std::vector<std::string>& titles,
                      const std::function<void(size_t)>& draw);

}  // namespace kvscope::gui
