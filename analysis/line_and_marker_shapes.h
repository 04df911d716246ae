#pragma once

#include <array>
#include <vector>

#include "analysis/figure.h"

/// Shapes of lines and markers, shared by app and exports. Lengths in points, y downwards.
namespace kvscope::analysis {

/// Returns alternating lengths of dashes and gaps; empty for a solid line.
std::vector<double> dash_lengths(const LineStyle& style);

using Corner = std::array<double, 2>;

/// Returns the corners of a square, triangle or diamond of size 2 around (0, 0), or the ends of a cross's two strokes.
/// Empty for no marker and for a circle, whose radius is 1.
std::vector<Corner> marker_corners(Marker marker);

/// Returns the diameter of a curve's markers.
double marker_size(const LineStyle& style);

double cross_width(double size);  ///< width of a cross's strokes

/// Returns the tip and both base corners of an arrowhead; empty if the line is too short. The tip ends at the marker of
/// the last point.
/// @param from, to ends of the last line segment
/// @param point length of 1 pt in their units
std::vector<Corner> arrow_head(Corner from, Corner to, double point);

/// Whether a line or marker of this color needs an outline on white; mainly Okabe and Ito's yellow does.
bool wants_rim(Rgb color);
Rgb rim_of(Rgb color);

}  // namespace kvscope::analysis
