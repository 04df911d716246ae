#pragma once

#include <cairo.h>

#include <string>

#include "analysis/drawing/color_map.h"
#include "analysis/drawing/figure.h"

namespace kvscope::figures {

enum class HorizontalAlign { left, center, right };
enum class VerticalAlign { top, middle, bottom };

struct TextStyle {
    double size_pt = 7;
    bool bold = false;
    bool monospace = false;
    analysis::Rgb color;
};

struct TextSize {
    double width = 0;
    double height = 0;
};

/// Returns the text with U+FFFD for invalid UTF-8 and without NUL characters, as PDF and XML require.
[[nodiscard]] std::string valid_text(const std::string& text);

/// Returns the size of a text in points. Needs no surface.
[[nodiscard]] TextSize measure_text(const std::string& text, const TextStyle& style);

/// Draws one line of text, aligned at the point (x, y). @param turn number of counterclockwise quarter turns
void draw_text(cairo_t* cr, const std::string& text, const TextStyle& style, double x, double y,
               HorizontalAlign horizontal, VerticalAlign vertical, int turn = 0);

/// Draws a map's label centered at (x, y), each part in its color. @param width maximum in points; 0 for no limit
void draw_label(cairo_t* cr, const analysis::TextLabel& label, double size_pt, double x, double y, double width);

/// Returns the text, or its beginning with "…" if the text is wider than `width` points.
[[nodiscard]] std::string fit_text(const std::string& text, const TextStyle& style, double width);

}  // namespace kvscope::figures
