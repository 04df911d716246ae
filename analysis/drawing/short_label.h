#pragma once

#include <string>

#include "analysis/drawing/figure.h"

namespace kvscope::analysis {

/// Shortens a run's label for a figure: file names instead of paths, and at most 40 characters, cut in the middle.
/// "echokv:maps=/home/me/maps/echo.safetensors @ 50 %" becomes "echokv:maps=echo.safetensors @ 50 %".
[[nodiscard]] std::string short_label(const std::string& label);

/// Shortens labels in legends, titles and rows unless they would become equal. `whole` gets the full text.
void shorten_labels(Figure& figure);

}  // namespace kvscope::analysis
