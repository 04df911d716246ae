#pragma once

#include <array>
#include <vector>

#include "analysis/figure.h"

/// How lines and markers look, for whatever draws them: the window's and the files'. Lengths in points, y downwards.
namespace kvscope::analysis {

/// Lengths of strokes and of the gaps behind them; empty: solid.
std::vector<double> dash_lengths(const LineStyle& style);

using Corner = std::array<double, 2>;

/// Corners of a square, triangle or diamond of size 2 around (0, 0), or of a cross those that its two strokes join, one
/// stroke after the other; empty for none and a circle, whose radius is 1.
std::vector<Corner> marker_corners(Marker marker);

/// Across, of a curve's markers.
double marker_size(const LineStyle& style);

/// The width of a cross's strokes.
double cross_width(double size);

/// The head of an arrow, whose tip stands before the point that it leads to, where a marker begins: tip and both ends
/// of its foot. @param from, to of the line's last part @param points of a point in the units of both
/// @returns nothing where the line is too short
std::vector<Corner> arrow_head(Corner from, Corner to, double point);

/// Whether a line or marker of that colour needs a rim on white ground: Okabe and Ito's yellow, above all.
bool wants_rim(Rgb color);
Rgb rim_of(Rgb color);

}  // namespace kvscope::analysis
