#pragma once

#include <string>

#include "analysis/figure.h"

namespace kvscope::analysis {

/// A run's label as a figure has room for it: paths among its parameters by the files' own names, and what is then
/// longer than 40 characters without its middle. "echokv:maps=/home/me/maps/echo.safetensors @ 50 %" is
/// "echokv:maps=echo.safetensors @ 50 %".
std::string short_label(const std::string& label);

/// Legends, titles of panels and rows of runs with short labels; what stood there is in their `whole`. Labels that
/// would be alike keep their paths, without their middles, and stay as they are where that would not tell them apart
/// either.
void shorten_labels(Figure& figure);

}  // namespace kvscope::analysis
