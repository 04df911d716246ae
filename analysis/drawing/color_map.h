#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kvscope::analysis {

/// sRGB color, 8 bits per channel.
struct Rgb {
    uint8_t r = 0;
    uint8_t g = 0;
    uint8_t b = 0;
    [[nodiscard]] friend constexpr bool operator==(Rgb, Rgb) = default;
};

/// Color of a line or marker on paper.
struct MarkColor : Rgb {
    std::optional<Rgb> on_dark;  ///< replaces the color on dark backgrounds; nullopt: the app adapts the color

    constexpr MarkColor(Rgb color = {}, std::optional<Rgb> dark = {}) : Rgb(color), on_dark(dark) {}
};

enum class ColorMap {
    viridis,           ///< sequential, dark to light, for a dark background: larger values stand out more
    viridis_reversed,  ///< sequential, light to dark, for paper
    blue_white_red,    ///< diverging and safe for color-blind readers, with a neutral middle
    blue_dark_red,     ///< blue_white_red for a dark background: the middle is dark, the ends are light
    red_yellow_green   ///< colors of needle maps in papers, from wrong to right; not safe for color-blind readers
};

/// Returns a map's colors in ascending order. Diverging maps have an odd number of colors, one of them in the middle.
[[nodiscard]] std::span<const Rgb> color_table(ColorMap map);

/// Returns the color at t. Values outside [0, 1] are clamped; NaN gives the lowest color.
[[nodiscard]] Rgb color_at(ColorMap map, double t);

/// Returns black or white, whichever text color is easier to read on `ground`.
[[nodiscard]] Rgb ink_on(Rgb ground);

[[nodiscard]] std::string_view color_map_name(ColorMap map);

/// Okabe and Ito's colors without black, which the full run uses. Yellow is last because it is the faintest on paper.
[[nodiscard]] std::span<const Rgb> okabe_ito();

}  // namespace kvscope::analysis
