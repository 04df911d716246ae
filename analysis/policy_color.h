#pragma once

#include <string_view>

#include "analysis/color_map.h"

namespace kvscope::analysis {

/// The colour that a policy has in every trace, view and figure, by its name alone. Those of the demonstration are the
/// farthest apart, for eyes that do not tell red from green, too, on white paper and on the window's dark ground. A
/// policy that is not in the list has one of a few colours beside theirs, always the same. `full`, drawn black, has
/// none.
Rgb policy_color(std::string_view policy);

/// Shades of a policy's colour, for its other parameters and for other traces: as far as they go from the other
/// policies' colours. Of any other colour, mixed with 40 % of white or black.
Rgb paler(Rgb color);
Rgb darker(Rgb color);

}  // namespace kvscope::analysis
