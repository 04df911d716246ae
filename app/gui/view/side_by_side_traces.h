#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gui/view/view.h"

namespace kvscope::gui {

struct CellTitle {
    std::string text;                 ///< title, or text after the trace's name if `trace` is set
    const Document* trace = nullptr;  ///< trace whose badge and name are shown, or nullptr
};

/// Returns the titles: the traces' names, "A − B" for a difference, or none for a single trace.
[[nodiscard]] std::vector<CellTitle> titles_of_side_by_side_traces(const Session& session,
                                                                   const FigureRequest& request);

/// Draws a child window for each title, side by side, or stacked if there is more height than width.
void draw_panel_per_trace(const Context& context, const char* id, ImVec2 size, const std::vector<CellTitle>& titles,
                          const std::function<void(size_t)>& draw);

}  // namespace kvscope::gui
