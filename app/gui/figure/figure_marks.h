#pragma once

#include <imgui.h>

#include "app/gui/figure/figure_job.h"
#include "app/gui/figure/figure_shapes.h"

namespace kvscope::gui {

/// Marks the selected and the hovered item on the axes of a panel: a cell, a row or a column.
void mark_selected_and_hovered(const Context& context, const PreparedFigure& shown, const analysis::Panel& panel,
                               const PlotFrame& frame, ImDrawList* list);

}  // namespace kvscope::gui
