#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws the context menu of a view with a figure, at the end of View::draw. @param request result of View::figure()
void draw_figure_menu(Context& context, const View& view, const char* kind,
                      const std::optional<FigureRequest>& request);

void draw_figure_menu_items(Context& context, const View& view, const char* kind,
                            const std::optional<FigureRequest>& request);

/// Draws the context menu of a view with a table (View::table()), which is made when an item is chosen.
void draw_table_menu(Context& context, const View& view, const char* kind);

}  // namespace kvscope::gui
