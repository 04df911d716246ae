#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvscope::analysis {

/// sRGB, 8 bits a channel.
struct Rgb {
    uint8_t r = 0;
    uint8_t g = 0;
    uint8_t b = 0;
    friend constexpr bool operator==(Rgb, Rgb) = default;
};

enum class ColorMap {
    viridis,           ///< sequential, dark to light: on dark ground the larger value stands out more
    viridis_reversed,  ///< sequential, light to dark: the same on paper
    blue_white_red,    ///< diverging, told apart by colour-blind eyes; the middle is exactly neutral
    blue_dark_red      ///< the same for a dark ground: the middle is dark, the ends are light
};

/// The one table of a colour map, from its lowest to its highest value; the window uploads it as a texture, exports
/// read it here. The diverging map has an odd number of entries, so that its middle is an entry of its own.
std::span<const Rgb> color_table(ColorMap map);

/// The entry for t in [0, 1] (cut to it; NaN is not a colour and gives the lowest).
Rgb color_at(ColorMap map, double t);

/// Black or white, whichever text is read better in on this ground.
Rgb ink_on(Rgb ground);

std::string_view color_map_name(ColorMap map);

/// Okabe and Ito's colours without black, which `full` has: orange, sky blue, bluish green, vermillion, blue, reddish
/// purple, yellow. Yellow is last as the faintest on paper.
std::span<const Rgb> okabe_ito();

}  // namespace kvscope::analysis
