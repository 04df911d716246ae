#pragma once

#include <array>
#include <vector>

#include "analysis/drawing/figure.h"

/// Shapes of lines and markers for the app and the exports. Lengths are in points; y points downwards.
namespace kvscope::analysis {

/// Returns alternating lengths of dashes and gaps; empty for a solid line.
[[nodiscard]] std::vector<double> dash_lengths(const LineStyle& style);

using Corner = std::array<double, 2>;

/// Returns the corners of a marker of size 2 around (0, 0), or the ends of a cross's strokes. Empty for a circle.
[[nodiscard]] std::vector<Corner> marker_corners(Marker marker);

[[nodiscard]] double marker_size(const LineStyle& style);

[[nodiscard]] double cross_stroke_width(double size);  ///< width of a cross's strokes

/// Returns the tip and both base corners of the arrowhead at `to`; empty if the line is too short.
/// @param point length of 1 pt in the units of `from` and `to`
[[nodiscard]] std::vector<Corner> arrow_head(Corner from, Corner to, double point);

/// Whether a line or marker of this color, such as yellow, needs an outline on white.
[[nodiscard]] bool wants_rim(Rgb color);
[[nodiscard]] Rgb rim_of(Rgb color);

}  // namespace kvscope::analysis
