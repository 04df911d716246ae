#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/figure.h"
#include "analysis/ticks.h"
#include "app/figures/figure_text.h"

namespace kvscope::figures {

/// The figure does not fit into the size asked for, or contradicts itself.
struct LayoutError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// Points from the figure's upper left corner, y downwards.
struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    double right() const { return x + width; }
    double bottom() const { return y + height; }
};

struct PanelPlace {
    Box data;
    analysis::Ticks x_ticks;
    analysis::Ticks y_ticks;
    bool x_labels = true;  ///< false where a panel below or to the left carries them for all
    bool y_labels = true;
    double x_title_y = 0;  ///< top of the axis title's line
    double y_title_x = 0;  ///< left side of the turned title
};

struct ColorBarPlace {
    std::string title;
    Box title_box;
    Box bar;           ///< without its labels, which stand below
    Box ground_patch;  ///< beside a smooth bar, what its `background_label` names; no width where there is none
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

/// Of the row that begins below it.
struct RowHeading {
    std::string text;
    double x = 0;
    double y = 0;  ///< its top
};

struct FigureLayout {
    double width = 0;
    double height = 0;
    double title_y = 0;
    std::vector<PanelPlace> panels;  ///< in the order of Figure::panels
    std::vector<RowHeading> headings;
    Box grid;  ///< all data areas together
    std::vector<ColorBarPlace> color_bars;
    LegendPlace legend;
};

inline constexpr double points_per_mm = 72.0 / 25.4;
inline constexpr double legend_symbol_pt = 18;

/// Styles that measuring and drawing share.
TextStyle tick_text_style();
TextStyle axis_title_style();
TextStyle panel_title_style();
TextStyle panel_note_style();
TextStyle figure_title_style();

/// Number of colour patches of a scale of few whole numbers, "none" among them; 0 where a smooth bar is drawn.
size_t color_patches(const analysis::ColorScale& scale);

/// Places everything so that no text overlaps. @throws LayoutError when panels would be left without room, or when the
/// figure's data contradict one another (sizes of maps, indices of scales, places in the grid).
FigureLayout lay_out(const analysis::Figure& figure);

}  // namespace kvscope::figures
