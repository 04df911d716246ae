#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// The menu of a right click into a view that shows a figure: copy its numbers as TSV, CSV, Markdown, LaTeX or JSON,
/// copy it as an image, export it, open the view once more. Called at the end of View::draw; @param request what
/// View::figure() returns.
void draw_figure_menu(Context& context, const View& view, const char* kind,
                      const std::optional<FigureRequest>& request);

/// The same lines for a menu of the view's own, between BeginPopup and EndPopup.
void draw_figure_items(Context& context, const View& view, const char* kind,
                       const std::optional<FigureRequest>& request);

/// The same for a table that is no figure: it is copied, and exported as text.
void draw_table_menu(Context& context, const View& view, const char* kind, const analysis::Table& table);

}  // namespace kvscope::gui
