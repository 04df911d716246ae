#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/drawing/ticks.h"
#include "app/figures/figure_text.h"

namespace kvscope::figures {

/// Reports a figure that is inconsistent or does not fit its size.
struct LayoutError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// A rectangle in points, relative to the figure's upper left corner; y points down.
struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    [[nodiscard]] double right() const { return x + width; }
    [[nodiscard]] double bottom() const { return y + height; }
};

struct PanelPlace {
    Box data;
    analysis::Ticks x_ticks;
    analysis::Ticks y_ticks;
    bool x_labels = true;  ///< false if a panel below or to the left carries the labels
    bool y_labels = true;
    double x_title_y = 0;  ///< top of the axis title's line
    double y_title_x = 0;  ///< left side of the rotated title
};

struct ColorBarPlace {
    std::string title;
    Box title_box;
    Box bar;           ///< without its labels
    Box ground_patch;  ///< patch for `background_label` next to a smooth bar; width 0 if absent
    analysis::Ticks ticks;
};

struct LegendPlace {
    struct Cell {
        size_t column = 0, line = 0;
    };
    Box box;
    std::vector<Cell> cells;  ///< in the order of Figure::legend; a heading (no symbol) begins a line
    double column_width = 0;
    double line_height = 0;
};

struct RowHeading {
    std::string text;
    double x = 0;
    double y = 0;
};

struct FigureLayout {
    double width = 0;
    double height = 0;
    double title_y = 0;
    std::vector<PanelPlace> panels;
    std::vector<RowHeading> headings;
    Box grid;
    std::vector<ColorBarPlace> color_bars;
    LegendPlace legend;
};

inline constexpr double points_per_mm = 72.0 / 25.4;
inline constexpr double legend_symbol_pt = 18;

[[nodiscard]] TextStyle tick_text_style();
[[nodiscard]] TextStyle axis_title_style();
[[nodiscard]] TextStyle panel_title_style();
[[nodiscard]] TextStyle panel_note_style();
[[nodiscard]] TextStyle figure_title_style();

/// Returns the number of color patches, including a patch for the background, or 0 for a smooth bar.
[[nodiscard]] size_t count_color_patches(const analysis::ColorScale& scale);

/// Lays out a figure without overlapping texts. @throws LayoutError if panels become too small; as check_figure
[[nodiscard]] FigureLayout lay_out(const analysis::Figure& figure);

}  // namespace kvscope::figures
