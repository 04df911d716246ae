#pragma once

#include <cairo.h>

#include <string>

#include "analysis/color_map.h"
#include "analysis/figure.h"

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
    double width = 0;  ///< points
    double height = 0;
};

/// The text with U+FFFD for what is no valid UTF-8 and without NULs: PDF and XML take nothing else.
std::string valid_text(const std::string& text);

/// As drawn, whatever the surface: figures are laid out before there is one.
TextSize measure_text(const std::string& text, const TextStyle& style);

/// Draws one line so that the named corner or middle is at (x, y), turned by `turn` quarter circles against the clock.
void draw_text(cairo_t* cr, const std::string& text, const TextStyle& style, double x, double y,
               HorizontalAlign horizontal, VerticalAlign vertical, int turn = 0);

/// Draws a map's label with its middle at (x, y), each part in its ink. @param size_pt of the font
/// @param width points into which it is squeezed where it is wider; 0: as wide as it is
void draw_label(cairo_t* cr, const analysis::TextLabel& label, double size_pt, double x, double y, double width);

/// The text itself, or its beginning with "…" where it is wider than `width` points.
std::string fit_text(const std::string& text, const TextStyle& style, double width);

}  // namespace kvscope::figures
