#include "app/figures/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/drawing/panel_titles.h"
#include "app/figures/check_figure.h"
#include "app/figures/figure_theme.h"
#include "app/figures/fit_ticks.h"

namespace kvscope::figures {
namespace {

using analysis::Axis;
using analysis::Figure;
using analysis::Panel;

constexpr double smallest_panel_pt = 4;
constexpr size_t most_patches = 12;

double line_height(const TextStyle& style) { return measure_text("Ag0", style).height; }

struct Decorations {
    std::vector<double> left;    ///< per column
    std::vector<double> right;   ///< per column
    std::vector<double> top;     ///< per row
    std::vector<double> bottom;  ///< per row
    std::vector<double> y_axis;
};

/// Lays out a figure in three passes, because tick labels and panel sizes depend on each other.
class Placement {
 public:
    explicit Placement(const Figure& figure) : figure_(figure), column_share_(figure.column_widths) {
        layout_.width = figure.width_mm * points_per_mm;
        layout_.panels.resize(figure.panels.size());
        if (column_share_.empty()) column_share_.assign(figure.columns, 1.0);
        const double total = std::accumulate(column_share_.begin(), column_share_.end(), 0.0);
        for (double& share : column_share_) share /= total;
        row_share_ = figure.row_heights;
        if (row_share_.empty()) row_share_.assign(figure.rows, 1.0);
        for (double& share : row_share_) share /= figure.row_heights.empty() ? 1 : figure.row_heights.front();
    }

    FigureLayout place() {
        for (size_t i = 0; i < layout_.panels.size(); ++i) {
            Box& data = layout_.panels[i].data;
            data.width = layout_.width / static_cast<double>(figure_.columns);
            data.height = figure_.panel_height_mm * row_share_[figure_.panels[i].row] * points_per_mm;
        }
        choose_labelled_panels();
        for (int pass = 0; pass < 3; ++pass) {
            choose_ticks();
            place_panels();
        }
        return layout_;
    }

 private:
    const Panel* panel_below(const Panel& panel) const {
        const Panel* nearest = nullptr;
        for (const Panel& other : figure_.panels) {
            if (other.column != panel.column || other.row <= panel.row) continue;
            if (nearest == nullptr || other.row < nearest->row) nearest = &other;
        }
        return nearest;
    }

    /// If axes are shared, gives labels only to the lowest panel of each column and the leftmost panel of each row.
    void choose_labelled_panels() {
        for (size_t i = 0; i < figure_.panels.size(); ++i) {
            const Panel& panel = figure_.panels[i];
            const Panel* below = panel_below(panel);
            if (figure_.shared_x && below != nullptr && analysis::can_share_labels(below->x, panel.x))
                layout_.panels[i].x_labels = false;
            for (const Panel& other : figure_.panels) {
                if (figure_.shared_y && other.row == panel.row && other.column < panel.column)
                    layout_.panels[i].y_labels = false;
            }
        }
    }

    void choose_ticks() {
        for (size_t i = 0; i < figure_.panels.size(); ++i) {
            PanelPlace& place = layout_.panels[i];
            place.x_ticks = fit_ticks(figure_.panels[i].x, place.data.width, Direction::horizontal);
            place.y_ticks = fit_ticks(figure_.panels[i].y, place.data.height, Direction::vertical);
            if (figure_.panels[i].square_cells &&
                is_square(figure_.panels[i])) {  // ticks of a square matrix are the same on both axes
                const bool x_has_fewer = place.x_ticks.ticks.size() < place.y_ticks.ticks.size();
                (x_has_fewer ? place.y_ticks : place.x_ticks) = x_has_fewer ? place.x_ticks : place.y_ticks;
            }
        }
    }

    static bool is_square(const Panel& panel) {
        return panel.x.min == panel.y.min && panel.x.max == panel.y.max && panel.x.scale == panel.y.scale &&
               panel.x.ticks.empty() && panel.y.ticks.empty();
    }

    Decorations decorations() const {
        Decorations d;
        d.left.assign(figure_.columns, 0);
        d.right.assign(figure_.columns, 0);
        d.top.assign(figure_.rows, 0);
        d.bottom.assign(figure_.rows, 0);
        d.y_axis.assign(figure_.columns, 0);
        for (size_t i = 0; i < figure_.panels.size(); ++i) {
            const Panel& panel = figure_.panels[i];
            const PanelPlace& place = layout_.panels[i];
            double& left = d.left[panel.column];
            double& right = d.right[panel.column];
            double& top = d.top[panel.row];
            double& bottom = d.bottom[panel.row];
            if (!panel.title.empty() || !panel.note.empty())
                top = std::max(top, line_height(panel_title_style()) + theme::gap_pt / 2);
            if (place.x_labels) {
                double height = theme::tick_length_pt + theme::gap_pt / 2 + line_height(tick_text_style());
                if (!figure_.shared_x && has_title(panel.x, place.x_ticks)) height += line_height(axis_title_style());
                // A panel above an empty grid cell has its labels in that cell.
                if (!figure_.shared_x || panel.row + 1 == figure_.rows || panel_below(panel) != nullptr)
                    bottom = std::max(bottom, height);
                const auto [before, behind] = overhang(panel.x, place);
                left = std::max(left, before);
                right = std::max(right, behind);
            }
            if (place.y_labels) {
                double& width = d.y_axis[panel.column];
                width = std::max(width, y_axis_width(panel, place));
                left = std::max(left, width);
                top = std::max(top, overhang_above(panel.y, place));
            }
        }
        for (size_t row = 0; row < figure_.rows; ++row)
            if (!analysis::trace_heading_of_row(figure_, row).empty()) d.top[row] += heading_height();
        return d;
    }

    double y_axis_width(const Panel& panel, const PanelPlace& place) const {
        double labels = 0;
        for (const auto& tick : place.y_ticks.ticks)
            labels = std::max(labels, measure_text(tick.label, tick_text_style()).width);
        const bool titled = !figure_.shared_y && has_title(panel.y, place.y_ticks);
        return theme::tick_length_pt + theme::gap_pt / 2 + labels +
               (titled ? theme::gap_pt + line_height(axis_title_style()) : 0);
    }

    static double heading_height() { return line_height(figure_title_style()) + theme::gap_pt / 2; }

    static bool has_title(const Axis& axis, const analysis::Ticks& ticks) {
        return !analysis::axis_title(axis.title, axis.unit, ticks.exponent).empty();
    }

    static std::pair<double, double> overhang(const Axis& axis, const PanelPlace& place) {
        double before = 0;
        double behind = 0;
        for (const auto& tick : place.x_ticks.ticks) {
            const double half = measure_text(tick.label, tick_text_style()).width / 2;
            const double at = position_on_axis(axis, tick.value) * place.data.width;
            before = std::max(before, half - at);
            behind = std::max(behind, half - (place.data.width - at));
        }
        return {before, behind};
    }

    static double overhang_above(const Axis& axis, const PanelPlace& place) {
        constexpr double upper_half = 0.35;  // share of a line's height that a centered digit takes above its middle
        double above = 0;
        for (const auto& tick : place.y_ticks.ticks) {
            const double half = upper_half * line_height(tick_text_style());
            above = std::max(above, half - (1 - position_on_axis(axis, tick.value)) * place.data.height);
        }
        return above;
    }

    const Panel* first_with_labels(bool of_x) const {
        for (size_t i = 0; i < figure_.panels.size(); ++i)
            if (of_x ? layout_.panels[i].x_labels : layout_.panels[i].y_labels) return &figure_.panels[i];
        return nullptr;
    }

    struct Around {
        Decorations of_panels;
        const Panel* x_panel = nullptr;  ///< first panel with labels; nullptr unless the panels share the axis
        const Panel* y_panel = nullptr;
        double left = 0;
        double bottom = 0;
        double top = 0;
        double below = 0;
    };

    Around place_around() {
        Around around;
        around.of_panels = decorations();
        around.x_panel = figure_.shared_x ? first_with_labels(true) : nullptr;
        around.y_panel = figure_.shared_y ? first_with_labels(false) : nullptr;
        if (around.y_panel != nullptr && !around.y_panel->y.title.empty())
            around.left = line_height(axis_title_style()) + theme::gap_pt;
        if (around.x_panel != nullptr && !around.x_panel->x.title.empty())
            around.bottom = line_height(axis_title_style());
        around.top = theme::margin_pt;
        layout_.title_y = around.top;
        if (figure_.show_title && !figure_.title.empty())
            around.top += line_height(figure_title_style()) + theme::gap_pt;
        around.below = place_below(0);
        return around;
    }

    double column_gap() const { return figure_.shared_y ? theme::space_pt * 0.7 : theme::space_pt * 1.4; }
    static double row_gap() { return theme::space_pt * 0.45; }

    double room_across(const Around& around) const {
        const Decorations& d = around.of_panels;
        const double sides = std::accumulate(d.left.begin(), d.left.end(), 0.0) +
                             std::accumulate(d.right.begin(), d.right.end(), 0.0) +
                             column_gap() * static_cast<double>(figure_.columns - 1);
        const double room = layout_.width - 2 * theme::margin_pt - around.left - sides;
        require_room(room * *std::ranges::min_element(column_share_), "width", figure_.width_mm);
        return room;
    }

    double wanted_height(const Around& around) const {
        if (figure_.height_mm <= 0) return figure_.panel_height_mm * points_per_mm;
        const Decorations& d = around.of_panels;
        const double fixed = around.top + std::accumulate(d.top.begin(), d.top.end(), 0.0) +
                             std::accumulate(d.bottom.begin(), d.bottom.end(), 0.0) +
                             row_gap() * static_cast<double>(figure_.rows - 1) + around.bottom + around.below +
                             theme::margin_pt;
        return (figure_.height_mm * points_per_mm - fixed) / std::accumulate(row_share_.begin(), row_share_.end(), 0.0);
    }

    void place_panels() {
        const Around around = place_around();
        const double room = room_across(around);
        std::vector<double> widths;
        for (const double share : column_share_) widths.push_back(room * share);
        double height = wanted_height(around);
        double squeeze = 1;  // factor that narrows columns if square cells cannot fill them
        if (const Panel* square = first_square(); square != nullptr) {
            const double ratio = (square->y.max - square->y.min) / (square->x.max - square->x.min);
            const double natural = widths[square->column] * ratio;
            const bool limited = figure_.height_mm > 0 || figure_.columns * figure_.rows == 1;
            if (limited && natural > height) {
                squeeze = height / natural;
            } else {
                height = natural;
            }
        }
        require_room(height * *std::ranges::min_element(row_share_), "height", figure_.height_mm);
        for (double& width : widths) width *= squeeze;
        const double left = theme::margin_pt + around.left + room * (1 - squeeze) / 2;
        const double bottom = place_data(around, left, widths, height);
        place_titles(around, bottom);
        place_below(bottom + around.bottom);
        layout_.height = figure_.height_mm > 0 ? figure_.height_mm * points_per_mm
                                               : bottom + around.bottom + around.below + theme::margin_pt;
    }

    /// @param height height of the first row @returns the bottom of the lowest row, including the labels
    double place_data(const Around& around, double left, const std::vector<double>& widths, double height) {
        const Decorations& d = around.of_panels;
        double x = left;
        std::vector<double> column_x;
        for (size_t c = 0; c < figure_.columns; ++c) {
            column_x.push_back(x + d.left[c]);
            x += d.left[c] + widths[c] + d.right[c] + column_gap();
        }
        double y = around.top;
        std::vector<double> row_y;
        for (size_t r = 0; r < figure_.rows; ++r) {
            row_y.push_back(y + d.top[r]);
            y += d.top[r] + height * row_share_[r] + d.bottom[r] + row_gap();
        }
        for (size_t i = 0; i < figure_.panels.size(); ++i) {
            const Panel& panel = figure_.panels[i];
            layout_.panels[i].data = {column_x[panel.column], row_y[panel.row], widths[panel.column],
                                      height * row_share_[panel.row]};
        }
        layout_.headings.clear();
        for (size_t r = 0; r < figure_.rows; ++r)
            if (const std::string heading = analysis::trace_heading_of_row(figure_, r); !heading.empty())
                layout_.headings.push_back({heading, column_x.front(), row_y[r] - d.top[r]});
        layout_.grid = {column_x.front(), row_y.front(), column_x.back() + widths.back() - column_x.front(),
                        row_y.back() + height * row_share_.back() - row_y.front()};
        return y - row_gap();
    }

    void place_titles(const Around& around, double bottom) {
        for (size_t i = 0; i < figure_.panels.size(); ++i) {
            PanelPlace& place = layout_.panels[i];
            place.x_title_y = around.x_panel != nullptr ? bottom
                                                        : place.data.bottom() + theme::tick_length_pt +
                                                              theme::gap_pt / 2 + line_height(tick_text_style());
            place.y_title_x = around.y_panel != nullptr
                                  ? layout_.grid.x - around.of_panels.y_axis[0] - around.left
                                  : place.data.x - around.of_panels.y_axis[figure_.panels[i].column];
        }
    }

    const Panel* first_square() const {
        const auto found = std::ranges::find_if(figure_.panels, [](const Panel& panel) { return panel.square_cells; });
        return found == figure_.panels.end() ? nullptr : &*found;
    }

    void require_room(double points, const char* side, double given_mm) const {
        if (points >= smallest_panel_pt) return;
        throw LayoutError(
            fmt::format("figure '{}': {} mm of {} are too little for {} x {} panels with titles, labels and legend; "
                        "enlarge the figure or show fewer panels",
                        figure_.name, given_mm, side, figure_.columns, figure_.rows));
    }

    double place_below(double y) {
        const double begin = y;
        layout_.color_bars.clear();
        std::vector<ColorBarSize> sizes;
        ColorBarSize widest;
        for (const analysis::ColorScale& scale : figure_.color_scales) {
            const ColorBarSize& size = sizes.emplace_back(color_bar_size(scale));
            widest.lead = std::max(widest.lead, size.lead);
            widest.bar = std::max(widest.bar, size.bar);
            widest.overhang = std::max(widest.overhang, size.overhang);
        }
        for (const ColorBarSize& size : sizes) y = place_color_bar(size, y + theme::space_pt * 0.7, widest);
        if (!figure_.legend.empty()) y = place_legend(y + theme::space_pt * 0.7);
        return y - begin;
    }

    struct ColorBarSize {
        double lead = 0;
        double bar = 0;
        double overhang = 0;
        double patch = 0;  ///< width of the background patch; 0 without one
        analysis::Ticks ticks{};
        std::string title{};
    };

    ColorBarSize color_bar_size(const analysis::ColorScale& scale) const {
        ColorBarSize size;
        const double room = layout_.width - 2 * theme::margin_pt;
        const size_t patches = count_color_patches(scale);
        size.bar = patches > 0 ? std::min(room * 0.6, 26.0 * static_cast<double>(patches))
                               : std::min(room * 0.45, 60 * points_per_mm);
        size.ticks = color_bar_ticks(scale, size.bar);
        size.title = analysis::axis_title(analysis::color_scale_title(scale), scale.unit, size.ticks.exponent);
        if (!size.ticks.ticks.empty())
            size.overhang = measure_text(size.ticks.ticks.back().label, tick_text_style()).width / 2;
        const bool has_patch = patches == 0 && !scale.background_label.empty();
        size.patch = has_patch ? 2.5 * theme::color_bar_pt : 0;
        const double label_width = has_patch ? measure_text(scale.background_label, tick_text_style()).width : 0;
        size.lead = measure_text(size.title, axis_title_style()).width + 3 * theme::gap_pt +
                    (has_patch ? std::max(size.patch, label_width) + 4 * theme::gap_pt : 0);
        return size;
    }

    double place_color_bar(const ColorBarSize& size, double y, const ColorBarSize& widest) {
        ColorBarPlace place;
        place.ticks = size.ticks;
        place.title = size.title;
        const double room = layout_.width - 2 * theme::margin_pt;
        const double bar_width = size.bar, patch_width = size.patch;
        const TextSize title = measure_text(place.title, axis_title_style());
        const bool has_patch = patch_width > 0;
        if (widest.lead + widest.bar + widest.overhang <= room) {
            const double left = std::max(theme::margin_pt, (layout_.width - widest.lead - widest.bar) / 2);
            const double top = y + std::max(0.0, (title.height - theme::color_bar_pt) / 2);
            place.bar = {left + widest.lead, top, bar_width, theme::color_bar_pt};
            place.title_box = {place.bar.x - size.lead, place.bar.y + place.bar.height / 2 - title.height / 2,
                               title.width, title.height};
        } else {
            place.title = fit_text(place.title, axis_title_style(), room);
            place.title_box = {(layout_.width - std::min(title.width, room)) / 2, y, std::min(title.width, room),
                               title.height};
            place.bar = {(layout_.width - bar_width) / 2, y + title.height + theme::gap_pt, bar_width,
                         theme::color_bar_pt};
        }
        if (has_patch) {
            place.ground_patch = {place.bar.x - 4 * theme::gap_pt - patch_width, place.bar.y, patch_width,
                                  place.bar.height};
        }
        const double bottom = place.bar.bottom() + theme::tick_length_pt + line_height(tick_text_style());
        layout_.color_bars.push_back(std::move(place));
        return bottom;
    }

    std::vector<LegendPlace::Cell> legend_cells(size_t columns) const {
        std::vector<LegendPlace::Cell> cells;
        LegendPlace::Cell next;
        for (const analysis::LegendEntry& entry : figure_.legend) {
            const bool is_heading = entry.symbol == analysis::LegendEntry::Symbol::none;
            if (next.column == columns || (is_heading && next.column > 0)) next = {0, next.line + 1};
            cells.push_back(next);
            ++next.column;
        }
        return cells;
    }

    double place_legend(double y) {
        LegendPlace& legend = layout_.legend;
        double widest = 0;
        for (const analysis::LegendEntry& entry : figure_.legend)
            widest = std::max(widest, measure_text(entry.label, tick_text_style()).width);
        const double room = layout_.width - 2 * theme::margin_pt;
        legend.line_height = line_height(tick_text_style()) * 1.15;
        legend.column_width = std::min(room, legend_symbol_pt + theme::gap_pt + widest + 2 * theme::space_pt);
        const size_t n = figure_.legend.size();
        const auto most = static_cast<size_t>((room + 2 * theme::space_pt) / legend.column_width);
        size_t columns = std::clamp<size_t>(most, 1, n);
        legend.cells = legend_cells(columns);
        const size_t lines = legend.cells.back().line + 1;
        while (columns > 1) {  // use fewer columns if the number of lines stays the same
            auto fewer = legend_cells(columns - 1);
            if (fewer.back().line + 1 > lines) break;
            legend.cells = std::move(fewer);
            --columns;
        }
        const double width = legend.column_width * static_cast<double>(columns) - 2 * theme::space_pt;
        legend.box = {std::max(theme::margin_pt, (layout_.width - width) / 2), y, width,
                      legend.line_height * static_cast<double>(lines)};
        return legend.box.bottom();
    }

    const Figure& figure_;
    FigureLayout layout_;
    std::vector<double> column_share_;
    std::vector<double> row_share_;  ///< relative to the first row's height
};

}  // namespace

TextStyle tick_text_style() { return {theme::tick_text_pt, false, false, theme::ink}; }
TextStyle axis_title_style() { return {theme::text_pt, false, false, theme::ink}; }
TextStyle panel_title_style() { return {theme::text_pt, true, false, theme::ink}; }
TextStyle panel_note_style() { return {theme::tick_text_pt, false, false, theme::ink_quiet}; }
TextStyle figure_title_style() { return {theme::title_pt, true, false, theme::ink}; }

size_t count_color_patches(const analysis::ColorScale& scale) {
    if (!scale.whole_numbers) return 0;
    const auto values = static_cast<size_t>(std::llround(scale.max - scale.min)) + 1;
    const size_t n = values + (scale.background_label.empty() ? 0 : 1);
    return n <= most_patches ? n : 0;
}

FigureLayout lay_out(const Figure& figure) {
    check_figure(figure);
    return Placement(figure).place();
}

}  // namespace kvscope::figures
