#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/color_map.h"

/// A figure as plain data: what is drawn, not how. The window and the exports draw the same description.
namespace kvscope::analysis {

enum class Scale { linear, logarithmic };

struct Tick {
    double value = 0;
    std::string label;
    std::string whole{};  ///< where the label is a shortened one: what it says in full
};

/// What numbers of a trace count.
enum class Dimension { none, run, layer, kv_head, query_head, token, step };

/// One axis of a panel. `min` < `max` are the data values at its ends.
struct Axis {
    std::string title;
    std::string unit;  ///< shown in parentheses behind the title; empty where a count or a name needs none
    double min = 0;
    double max = 1;
    Scale scale = Scale::linear;
    bool reversed = false;                  ///< y: min at the top (layers run downwards); x: min at the right
    bool whole_numbers = false;             ///< ticks only on whole numbers
    std::vector<Tick> ticks;                ///< empty: chosen by the drawer to fit (analysis/ticks.h)
    Dimension dimension = Dimension::none;  ///< what its whole numbers stand for
    std::vector<int> numbers;               ///< of the dimension, those at 0, 1, 2 …; empty: the axis's own
    std::vector<size_t> traces;             ///< of runs, whose each of `numbers` is; empty: the panel's
};

enum class Dash { solid, dashed, dotted, dash_dotted };
enum class Marker { none, circle, square, triangle, diamond, cross };

struct LineStyle {
    Rgb color;
    Dash dash = Dash::solid;
    Marker marker = Marker::none;
    double width_pt = 1.0;

    friend bool operator==(const LineStyle&, const LineStyle&) = default;
};

/// How the cells that share one pixel become one value. `maximum` keeps a single kept token among 100,000 visible;
/// `magnitude` is the same for differences: the value farthest from zero, the positive one of two that are as far.
enum class Reduction { maximum, mean, magnitude };

/// Values on a regular grid. Row 0 begins at y_begin, column 0 at x_begin (data coordinates). NaN: nothing known, drawn
/// as the panel's background.
struct HeatMap {
    size_t rows = 0;
    size_t columns = 0;
    std::vector<float> values;  ///< (rows, columns)
    double x_begin = 0;
    double x_end = 1;
    double y_begin = 0;
    double y_end = 1;
    size_t color_scale = 0;  ///< index into Figure::color_scales
    Reduction reduction = Reduction::maximum;
};

/// A grid whose cells belong to named classes (kept, evicted, merged …); `ids` index `classes`, 255 is none.
struct Categories {
    struct Class {
        std::string label;
        Rgb color;
    };
    static constexpr uint8_t none = 255;
    size_t rows = 0;
    size_t columns = 0;
    std::vector<uint8_t> ids;  ///< (rows, columns); of the classes in one pixel the highest id shows
    double x_begin = 0;
    double x_end = 1;
    double y_begin = 0;
    double y_end = 1;
    std::vector<Class> classes;
};

/// What a panel, a part of a plot or a place in it is of, in the terms of the traces that the figure was made of. −1:
/// of none, or of several.
struct Subject {
    size_t trace = 0;  ///< which of several
    int run = -1;      ///< its place in the trace's prompt
    int layer = -1;    ///< of the model
    int head = -1;
    int token = -1;            ///< of the prompt
    int step = -1;             ///< of decoding
    bool query_heads = false;  ///< `head` counts query heads, else KV heads

    bool operator==(const Subject&) const = default;
};

/// A row and a column that count the same, as heads by heads, are of two subjects: `a` by the y axis, `b` by the x
/// axis. Everywhere else they are alike.
struct SubjectPair {
    Subject a, b;
};

/// A curve; a NaN in y interrupts it. `low` and `high`, where given, bound a band around it.
struct Line {
    std::string label;
    std::vector<double> x;
    std::vector<double> y;
    std::vector<double> low;
    std::vector<double> high;
    LineStyle style;
    bool arrow = false;    ///< a head at its last point
    Subject subject = {};  ///< of a difference A's
};

struct Bars {
    std::string label;
    std::vector<double> x;  ///< centres
    std::vector<double> y;
    double base = 0;
    double width = 0.8;  ///< in data units of x
    Rgb color;
};

struct Scatter {
    std::string label;
    std::vector<double> x;
    std::vector<double> y;
    Marker marker = Marker::circle;
    double size_pt = 3.0;
    Rgb color = {};
    Subject subject = {};
    Dimension dimension = Dimension::none;  ///< of which the i-th point is number i
};

/// A reference line through the whole panel, with a word beside it.
struct Rule {
    bool horizontal = true;
    double value = 0;
    std::string label;
    LineStyle style;
};

/// Text at a place in data coordinates, centred on it, on the cells of a map: its colour is drawn as it is.
struct TextLabel {
    /// Colour of a part of a text.
    struct Ink {
        size_t end = 0;  ///< byte
        Rgb color;
        double x = 0;  ///< in data coordinates, its middle
    };
    double x = 0;
    double y = 0;
    std::string text;
    Rgb color;
    bool monospace = false;  ///< tokens and numbers
    Subject subject = {};
    double width = 0;               ///< along x, into which it is squeezed; 0: as wide as it is
    std::vector<Ink> inks = {};     ///< of its parts, from its beginning; none: `color`
    bool is_right_to_left = false;  ///< read so, whatever its letters: a bracket in Hebrew text
};

/// A part of a plot.
using Shape = std::variant<HeatMap, Categories, Line, Bars, Scatter, Rule, TextLabel>;

struct Panel {
    size_t page = 0;  ///< each has the figure's grid, legend and colour bars to itself
    size_t row = 0;
    size_t column = 0;
    std::string title;
    std::string whole_title;  ///< where the title is a shortened one: what it says in full
    std::string trace_name;   ///< which the title begins with where the figure is of several: "demo"
    std::string part;         ///< which of several panels of what the title names: "keys"
    std::string note;         ///< a number that belongs to the panel, at the right of its title
    Axis x;
    Axis y;
    std::vector<Shape> shapes;  ///< later ones lie above earlier ones
    bool square_cells = false;  ///< one unit of x is as long as one unit of y
    Subject subject = {};       ///< of what is drawn in it, too
};

/// Whether the labels of one stand for both.
bool are_alike(const Axis& one, const Axis& other);

/// What a place of a panel is of, in data coordinates: the panel's subject, and what its axes count there.
SubjectPair subjects_at(const Panel& panel, double x, double y);

/// What a cell of one of the panel's maps is of. @param map a HeatMap or Categories
template <class Map>
SubjectPair subjects_of_cell(const Panel& panel, const Map& map, size_t row, size_t column) {
    const auto middle = [](double begin, double end, size_t i, size_t n) {
        return begin + (static_cast<double>(i) + 0.5) * (end - begin) / static_cast<double>(n);
    };
    return subjects_at(panel, middle(map.x_begin, map.x_end, column, map.columns),
                       middle(map.y_begin, map.y_end, row, map.rows));
}

/// What a curve, points or a label are of, whichever of their points is meant; else as the panel.
Subject subject_of(const Panel& panel, const Shape& shape);

/// The same of one point of it.
Subject subject_of_point(const Panel& panel, const Shape& shape, size_t point);

/// From numbers to colours on light ground; each scale that a heat map uses has a colour bar. The larger a number, the
/// more it stands out from the ground: sequential maps get darker upwards, and a dark window turns them round.
struct ColorScale {
    std::string title;
    std::string of;  ///< whose numbers, behind the title; empty where that goes without saying, or differs
    std::string unit;
    ColorMap map = ColorMap::viridis_reversed;
    double map_begin = 0;  ///< the part of the map in use, as shares of it
    double map_end = 1;
    double min = 0;
    double max = 1;
    Scale scale = Scale::linear;
    bool whole_numbers = false;    ///< one flat colour per whole number from min to max
    std::string background_label;  ///< what values below `min` mean ("not kept"): they are drawn as background; empty:
                                   ///< no such values
};

/// "JSD, scores of snapkv 64"
std::string full_title(const ColorScale& scale);

/// Where on its colour map a scale has a value: 0 to 1, its limits for what is beyond them.
double place_on(const ColorScale& scale, double value);

/// Lets a scale of counts begin lower, where there are parts of one: logarithmic, since they are spread over decades.
/// @param least above 0; where the scale begins there already, or below, it stays as it is
void begin_at(ColorScale& scale, double least);

struct LegendEntry {
    enum class Symbol { line, patch, marker, none };
    std::string label;
    Symbol symbol = Symbol::line;
    LineStyle style;
    std::string whole{};   ///< where the label is a shortened one: what it says in full
    std::string behind{};  ///< the end of the label that is no part of a run's, as a number of it: never shortened
};

struct Figure {
    std::string name;   ///< as in `export --figure`
    std::string title;  ///< drawn only where `show_title` is set; papers have a caption instead
    bool show_title = false;
    std::string caption;  ///< what is shown, in a sentence or two
    size_t rows = 1;
    size_t columns = 1;
    bool shared_x = false;  ///< panels below one another whose x axes are alike are labelled once, at the bottom
    bool shared_y = false;  ///< all panels of a row have one y axis, labelled once at the left
    /// Each trace's panels stand in rows of their own, below a heading with its name (Panel::trace_name).
    bool trace_by_trace = false;
    std::vector<double> column_widths;  ///< of the panels' data areas, relative to each other; empty: all alike
    std::vector<double> row_heights;    ///< likewise; the first row's is panel_height_mm. The window's are all alike
    std::vector<Panel> panels;
    std::vector<ColorScale> color_scales;
    std::vector<LegendEntry> legend;
    double width_mm = 84;         ///< 84: one column of a paper, 174: two
    double height_mm = 0;         ///< 0: follows from panel_height_mm
    double panel_height_mm = 50;  ///< of a panel's data area; ignored where cells are square or height_mm is set
    /// What the figure was made from (model, prompt, policies, budgets, program version), into the file's metadata.
    std::vector<std::pair<std::string, std::string>> recipe;
    std::string created_utc;  ///< of the data, ISO 8601; a figure has no clock of its own, so that it can be reproduced
};

/// Each page as a figure of its own; of most figures that one figure.
std::vector<Figure> pages_of(Figure figure);

}  // namespace kvscope::analysis
