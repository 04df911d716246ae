#pragma once

#include "analysis/drawing/color_map.h"

/// Style of exported figures: always light, sizes in points (1/72 inch) on paper.
namespace kvscope::figures::theme {

inline constexpr const char* font = "Inter, Liberation Sans, DejaVu Sans, sans-serif";
inline constexpr const char* font_monospace = "JetBrains Mono, DejaVu Sans Mono, monospace";

inline constexpr double text_pt = 7.5;
inline constexpr double tick_text_pt = 7.0;
inline constexpr double title_pt = 8.0;

inline constexpr double frame_pt = 0.5;
inline constexpr double tick_pt = 0.5;
inline constexpr double tick_length_pt = 2.2;
inline constexpr double gap_pt = 2.5;     ///< between related elements
inline constexpr double space_pt = 7.0;   ///< between panels, and between panels and legend
inline constexpr double margin_pt = 1.5;  ///< around the figure; papers add their own margin
inline constexpr double color_bar_pt = 6.0;

inline constexpr analysis::Rgb ground{255, 255, 255};
inline constexpr analysis::Rgb ink{20, 20, 20};
inline constexpr analysis::Rgb ink_quiet{95, 95, 95};

}  // namespace kvscope::figures::theme
