#include "analysis/drawing/covered_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

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

namespace {

struct Curve {
    Line line;
    const Panel* panel = nullptr;
};

std::vector<Curve> curves_of(const Figure& figure, int series) {
    std::vector<Curve> curves;
    for (const Panel& panel : figure.panels) {
        for (const Shape& shape : panel.shapes) {
            if (const auto* line = std::get_if<Line>(&shape); line && line->series == series)
                curves.push_back({*line, &panel});
            if (const auto* point = std::get_if<Scatter>(&shape); point && point->series == series)
                curves.push_back({Line{"", point->x, point->y, {}, {}, {}}, &panel});
        }
    }
    return curves;
}

bool are_hidden_by(const std::vector<Curve>& below, const std::vector<Curve>& above) {
    return !below.empty() && std::all_of(below.begin(), below.end(), [&](const Curve& one) {
        return std::any_of(above.begin(), above.end(), [&](const Curve& other) {
            const bool are_points = one.line.x.size() == 1 && other.line.x.size() == 1;
            return one.panel == other.panel && (are_points || other.line.x.size() > 1) &&
                   is_line_hidden_by(one.line, other.line, *one.panel);
        });
    });
}

}  // namespace

void mark_hidden_series(Figure& figure) {
    struct Listed {
        LegendEntry* entry;
        std::string label;
        std::vector<Curve> curves;
    };
    std::vector<Listed> listed;
    for (LegendEntry& entry : figure.legend) {
        if (entry.series < 0) continue;
        for (const Listed& other : listed)
            if (other.entry->series == entry.series) return;
        listed.push_back(
            {&entry, entry.label.substr(0, entry.label.size() - entry.behind.size()), curves_of(figure, entry.series)});
    }
    for (size_t i = 0; i < listed.size(); ++i) {
        for (size_t j = listed.size(); j-- > i + 1;) {
            if (!are_hidden_by(listed[i].curves, listed[j].curves)) continue;
            const std::string covered = fmt::format(" (covered by {})", listed[j].label);
            LegendEntry& hidden = *listed[i].entry;
            hidden.behind += covered;
            hidden.label += covered;
            if (!hidden.whole.empty()) hidden.whole += covered;
            break;
        }
    }
}

void place_labels_side_by_side(Panel& panel) {
    constexpr double label_height = 0.1;  // of the axis; a label of 8 pt has 5 % of 60 mm, and 8 % of a small plot
    const double height = label_height * std::abs(place(panel.y, panel.y.max) - place(panel.y, panel.y.min));
    std::vector<Rule*> rules;
    for (Shape& shape : panel.shapes) {
        auto* rule = std::get_if<Rule>(&shape);
        if (!rule || !rule->horizontal || rule->label.empty()) continue;
        rule->beside.clear();
        for (const Rule* other : rules)
            if (std::abs(place(panel.y, rule->value) - place(panel.y, other->value)) < height)
                rule->beside = std::max(rule->beside, other->beside + other->label + "    ",
                                        [](auto& a, auto& b) { return a.size() < b.size(); });
        rules.push_back(rule);
    }
}

}  // namespace kvscope::analysis
