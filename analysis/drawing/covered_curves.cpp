#include "analysis/drawing/covered_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope::analysis {
namespace {

double place(const Axis& axis, double value) { return axis.scale == Scale::logarithmic ? std::log(value) : value; }

double height_at(const Line& line, double x, const Panel& panel) {
    const auto next = std::lower_bound(line.x.begin(), line.x.end(), x);
    if (next == line.x.end()) return NAN;
    const auto i = static_cast<size_t>(next - line.x.begin());
    if (*next == x) return place(panel.y, line.y[i]);
    if (i == 0) return NAN;
    const double from = place(panel.x, line.x[i - 1]), to = place(panel.x, line.x[i]);
    const double share = (place(panel.x, x) - from) / (to - from);
    return place(panel.y, line.y[i - 1]) * (1 - share) + place(panel.y, line.y[i]) * share;
}

}  // namespace

bool is_line_hidden_by(const Line& below, const Line& above, const Panel& panel) {
    constexpr double line_width = 0.003;
    if (above.style.dash != Dash::solid && above.style.dash != below.style.dash) return false;
    if (!std::is_sorted(above.x.begin(), above.x.end())) return false;
    const double width = line_width * std::abs(place(panel.y, panel.y.max) - place(panel.y, panel.y.min));
    bool is_somewhere = false;
    for (size_t i = 0; i < below.y.size(); ++i) {
        if (std::isnan(below.y[i])) continue;
        is_somewhere = true;
        const double own = place(panel.y, below.y[i]), other = height_at(above, below.x[i], panel);
        if (!(std::abs(own - other) <= width) && own != other) return false;
    }
    return is_somewhere;
}

void mark_hidden_lines_in_legend(std::vector<LegendEntry>& legend, const Panel& panel) {
    std::vector<const Line*> lines;
    for (const Shape& shape : panel.shapes)
        if (const auto* line = std::get_if<Line>(&shape)) lines.push_back(line);
    for (size_t i = 0; i < lines.size(); ++i) {
        for (size_t j = lines.size(); j-- > i + 1;) {
            if (!is_line_hidden_by(*lines[i], *lines[j], panel)) continue;
            const std::string under = fmt::format(" (under {})", lines[j]->label);
            legend[i].behind += under;
            legend[i].label += under;
            break;
        }
    }
}

}  // namespace kvscope::analysis
