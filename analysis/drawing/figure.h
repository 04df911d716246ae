#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/drawing/color_map.h"

/// A figure as plain data. The app and the exports draw the same description.
namespace kvscope::analysis {

enum class Scale { linear, logarithmic };

struct Tick {
    double value = 0;
    std::string label;
    std::string whole{};  ///< the full text if the label is shortened
};

/// Kind of item that the numbers of an axis count.
enum class Dimension { none, run, layer, kv_head, query_head, token, step };

/// One axis of a panel, from `min` to `max` in data values. `min` is less than `max`.
struct Axis {
    std::string title;
    std::string unit;  ///< shown in parentheses after the title; empty for counts and names
    double min = 0;
    double max = 1;
    Scale scale = Scale::linear;
    bool reversed = false;                  ///< y axis: min at the top (as for layers); x axis: min at the right
    bool whole_numbers = false;             ///< ticks only at whole numbers
    std::vector<Tick> ticks;                ///< empty: chosen by the renderer (analysis/drawing/ticks.h)
    Dimension dimension = Dimension::none;  ///< kind of item that the numbers refer to
    std::vector<int> numbers;               ///< item numbers at positions 0, 1, 2 …; empty: equal to the positions
    std::vector<size_t> traces;             ///< trace of each run in `numbers`; empty: the panel's trace
};

enum class Dash { solid, dashed, dotted, dash_dotted };
enum class Marker { none, circle, square, triangle, diamond, cross };

struct LineStyle {
    MarkColor color;
    Dash dash = Dash::solid;
    Marker marker = Marker::none;
    double width_pt = 1.0;

    [[nodiscard]] friend bool operator==(const LineStyle&, const LineStyle&) = default;
};

/// How several cells become one pixel. `magnitude` takes the value farthest from zero; the positive one wins a tie.
enum class Reduction { maximum, mean, magnitude };

/// Values on a regular grid that begins at (x_begin, y_begin) in data coordinates. NaN is drawn as background.
struct HeatMap {
    size_t rows = 0;
    size_t columns = 0;
    std::vector<float> values;  ///< values row by row (rows, columns)
    double x_begin = 0;
    double x_end = 1;
    double y_begin = 0;
    double y_end = 1;
    size_t color_scale = 0;  ///< index into Figure::color_scales
    Reduction reduction = Reduction::maximum;
};

/// A grid whose cells belong to named classes such as kept, dropped and merged.
struct Categories {
    struct Class {
        std::string label;
        Rgb color;
    };
    static constexpr uint8_t none = 255;
    size_t rows = 0;
    size_t columns = 0;
    std::vector<uint8_t> ids;  ///< (rows, columns) index into `classes`, or `none`; the highest id in a pixel is drawn
    double x_begin = 0;
    double x_end = 1;
    double y_begin = 0;
    double y_end = 1;
    std::vector<Class> classes;
};

/// The trace, run, layer, head, token and step that a panel or shape shows. −1 means none or several.
struct Subject {
    size_t trace = 0;  ///< index of the trace, in a figure of several traces
    int run = -1;      ///< index of the run in its prompt
    int layer = -1;
    int head = -1;
    int token = -1;
    int step = -1;             ///< decode step
    bool query_heads = false;  ///< `head` counts query heads instead of KV heads

    [[nodiscard]] bool operator==(const Subject&) const = default;
};

/// Subjects of a cell: `a` from the y axis, `b` from the x axis. Both are equal except on maps such as heads by heads.
struct SubjectPair {
    Subject a, b;
};

/// A curve, interrupted where y is NaN. If `low` and `high` are not empty, they bound a band around the curve.
struct Line {
    std::string label;
    std::vector<double> x;
    std::vector<double> y;
    std::vector<double> low;
    std::vector<double> high;
    LineStyle style;
    bool arrow = false;    ///< arrowhead at the last point
    Subject subject = {};  ///< in a difference: the subject of A
    int series = -1;       ///< `series` of the legend entry that explains this; -1: none
};

struct Bars {
    std::string label;
    std::vector<double> x;  ///< centers of the bars
    std::vector<double> y;
    double base = 0;
    double width = 0.8;  ///< width of a bar in units of x
    MarkColor color;
};

struct Scatter {
    std::string label;
    std::vector<double> x;
    std::vector<double> y;
    Marker marker = Marker::circle;
    double size_pt = 3.0;
    MarkColor color = {};
    Subject subject = {};
    Dimension dimension = Dimension::none;  ///< kind of item; point i shows item i
    int series = -1;                        ///< `series` of the legend entry that explains this; -1: none
};

/// A reference line across the whole panel, with a label.
struct Rule {
    bool horizontal = true;
    double value = 0;
    std::string label;
    LineStyle style;
    std::string beside = {};  ///< text at the left end, next to which the label stands (place_labels_side_by_side())
};

/// Text centered at a point in data coordinates, on top of a map. Its color does not change with the theme.
struct TextLabel {
    /// Color of a part of the text.
    struct Ink {
        size_t end = 0;  ///< byte offset at which the part ends
        Rgb color;
        double x = 0;  ///< middle of the part, in data coordinates
    };
    double x = 0;
    double y = 0;
    std::string text;
    Rgb color;
    bool monospace = false;  ///< whether the text is a token or a number
    Subject subject = {};
    double width = 0;               ///< width along x to which the text is compressed; 0: natural width
    std::vector<Ink> inks = {};     ///< colors of the parts in order; empty: `color`
    bool is_right_to_left = false;  ///< draws the text from right to left, for example a bracket in Hebrew text
    bool bold = false, underlined = false;
};

using Shape = std::variant<HeatMap, Categories, Line, Bars, Scatter, Rule, TextLabel>;

struct Panel {
    size_t page = 0;  ///< page of the exported figure, with its own grid, legend and color bars
    size_t row = 0;
    size_t column = 0;
    std::string title;
    std::string whole_title;  ///< the full text if the title is shortened
    std::string trace_name;   ///< the prefix of the title in a figure of several traces: "demo"
    std::string part;         ///< distinguishes panels with the same subject: "keys"
    std::string note;         ///< short text at the right of the title, such as a number
    Axis x;
    Axis y;
    std::vector<Shape> shapes;  ///< later shapes cover earlier ones
    bool square_cells = false;  ///< one unit of x is as long as one unit of y
    Subject subject = {};       ///< subject of shapes without their own subject
};

/// Whether two axes can share labels.
[[nodiscard]] bool can_share_labels(const Axis& one, const Axis& other);

/// Returns the subjects at data coordinates of a panel: the panel's subject plus the items on its axes.
[[nodiscard]] SubjectPair subjects_at_coordinates(const Panel& panel, double x, double y);

/// Returns the subjects of one cell of a map in the panel. @param map a HeatMap or Categories
template <class Map>
[[nodiscard]] SubjectPair subjects_of_cell(const Panel& panel, const Map& map, size_t row, size_t column) {
    const auto middle = [](double begin, double end, size_t i, size_t n) {
        return begin + (static_cast<double>(i) + 0.5) * (end - begin) / static_cast<double>(n);
    };
    return subjects_at_coordinates(panel, middle(map.x_begin, map.x_end, column, map.columns),
                                   middle(map.y_begin, map.y_end, row, map.rows));
}

/// Returns the subject of a shape, or the panel's subject if the shape has none.
[[nodiscard]] Subject subject_of_shape(const Panel& panel, const Shape& shape);

[[nodiscard]] Subject subject_of_point(const Panel& panel, const Shape& shape, size_t point);

/// Maps numbers to colors. In sequential maps, larger numbers are darker, or lighter if the theme is dark.
struct ColorScale {
    std::string title;
    std::string of;  ///< runs whose numbers are shown; empty if obvious, or if panels differ
    std::string unit;
    ColorMap map = ColorMap::viridis_reversed;
    /// Start and end of the used part of the color map, from 0 to 1. If the start is larger, small numbers are darker.
    double map_begin = 0;
    double map_end = 1;
    double min = 0;
    double max = 1;
    Scale scale = Scale::linear;
    bool whole_numbers = false;    ///< one flat color per whole number from min to max
    std::string background_label;  ///< meaning of values below `min`, drawn as background: "not kept"; empty if none
};

/// Returns title and runs: "JSD, scores of snapkv 64".
[[nodiscard]] std::string color_scale_title(const ColorScale& scale);

[[nodiscard]] double position_on_scale(const ColorScale& scale, double value);

/// Extends a scale of counts down to `least`, a fraction of an entry, and makes the scale logarithmic.
void begin_log_scale_at(ColorScale& scale, double least);

struct LegendEntry {
    enum class Symbol { line, patch, marker, none };
    std::string label;
    Symbol symbol = Symbol::line;
    LineStyle style;
    std::string whole{};   ///< the full text if the label is shortened
    std::string behind{};  ///< suffix that follows a run's label, such as a number; never shortened
    int series = -1;       ///< id that the explained curves and points have as `series`; -1: explains none
};

struct Figure {
    std::string name;   ///< name of the figure in `export --figure`
    std::string title;  ///< drawn only if `show_title` is set; papers use captions
    bool show_title = false;
    std::string caption;  ///< one or two sentences about the contents
    size_t rows = 1;
    size_t columns = 1;
    bool shared_x = false;  ///< Adjacent panels of a column with equal x axes have labels only at the bottom.
    bool shared_y = false;  ///< All panels of a row share one y axis with labels at the left.
    /// Panels of each trace form separate rows below a heading with the trace's name (Panel::trace_name).
    bool trace_by_trace = false;
    std::vector<double> column_widths;  ///< relative widths of the panels' data areas; empty: equal
    std::vector<double> row_heights;    ///< heights of the rows of panels in mm, the first equal to panel_height_mm
    std::vector<Panel> panels;
    std::vector<ColorScale> color_scales;
    std::vector<LegendEntry> legend;
    double width_mm = 84;         ///< 84: one column of a paper; 174: two columns
    double height_mm = 0;         ///< 0: computed from panel_height_mm
    double panel_height_mm = 50;  ///< height of a panel's data area; ignored if cells are square or height_mm is set
    /// Origin of the data (model, prompt, policies, budgets, program version), written to the file's metadata.
    std::vector<std::pair<std::string, std::string>> recipe;
    std::string created_utc;  ///< date of the data (ISO 8601), not of the export
};

[[nodiscard]] std::vector<Figure> split_into_pages(Figure figure);

}  // namespace kvscope::analysis
