#pragma once

#include <imgui.h>

#include <string>

#include "analysis/ticks.h"
#include "app/gui/figure/figure_shapes.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

constexpr float small_text = 0.87f;  ///< of the usual text: tick labels, titles of panels

/// Of small text.
ImVec2 small_text_size(const std::string& text);
/// What a shortened text says in full, while the mouse is over it; nothing where `whole` is empty.
void tell_whole_text(ImVec2 at, const std::string& shown, const std::string& whole);

void add_small_text(ImDrawList* list, ImVec2 at, ImU32 color, const std::string& text);

/// Ticks of an axis that is so many pixels long, with text of which none overlaps the one before.
analysis::Ticks x_ticks(const analysis::Axis& axis, float width);
analysis::Ticks y_ticks(const analysis::Axis& axis, float height);
float widest_label(const analysis::Ticks& ticks);

/// Where an upright title ends below: centred between `from` and `to`, but not beyond the window's edges `top` and
/// `bottom` where it is short enough for it.
float lower_end_of_title(float from, float to, float length, float top, float bottom);

/// Ticks with their labels and the axes' titles below and left of a panel's data.
void draw_ticks(const Context& context, const PlotFrame& frame, bool x_labels, bool y_labels, float y_title_x);
/// Across the panel, at its ticks.
void draw_grid_lines(const Theme& theme, const PlotFrame& frame, ImDrawList* list);

}  // namespace kvscope::gui
