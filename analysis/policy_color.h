#pragma once

#include <optional>
#include <string_view>

#include "analysis/color_map.h"

namespace kvscope::analysis {

/// The colour that a policy has in every trace, view and figure, by its name alone. Those of the demonstration are the
/// farthest apart on white paper, for eyes that do not tell red from green, too. A
/// policy that is not in the list has one of a few colours beside theirs, always the same. `full`, drawn black, has
/// none.
Rgb policy_color(std::string_view policy);

/// Shades of a policy's colour, for its other parameters and for other traces: as far as they go from the other
/// policies' colours. Of any other colour, mixed with 40 % of white or black.
Rgb paler(Rgb color);
Rgb darker(Rgb color);

/// What stands for it on a dark ground: of the same hue, as bright as the ground asks for, and as far from the others
/// as on paper. @param color a policy's own, or its paler shade; nothing of any other colour: one that is too dark has
/// to be lightened
std::optional<Rgb> policy_color_on_dark(Rgb color);

}  // namespace kvscope::analysis
