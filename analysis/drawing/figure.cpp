#include "analysis/drawing/figure.h"

#include <algorithm>
#include <cmath>

namespace kvscope::analysis {
namespace {

int place_on(const Axis& axis, double at) {
    const double place = std::round(at);
    if (!(place >= 0)) return -1;
    return axis.numbers.empty() || place < static_cast<double>(axis.numbers.size()) ? static_cast<int>(place) : -1;
}

void set(Subject& subject, Dimension dimension, int number) {
    switch (dimension) {
        case Dimension::none:
            return;
        case Dimension::run:
            subject.run = number;
            return;
        case Dimension::layer:
            subject.layer = number;
            return;
        case Dimension::kv_head:
        case Dimension::query_head:
            subject.head = number;
            subject.query_heads = dimension == Dimension::query_head;
            return;
        case Dimension::token:
            subject.token = number;
            return;
        case Dimension::step:
            subject.step = number;
            return;
    }
}

void set_along(Subject& subject, const Axis& axis, double at) {
    const bool is_beyond = at < std::min(axis.min, axis.max) || at > std::max(axis.min, axis.max);
    const int place = is_beyond ? -1 : place_on(axis, at);
    if (axis.dimension == Dimension::none || place < 0) return;
    const auto i = static_cast<size_t>(place);
    set(subject, axis.dimension, axis.numbers.empty() ? place : axis.numbers[i]);
    if (!axis.traces.empty()) subject.trace = axis.traces.at(i);
}

const Subject* own_subject(const Shape& shape) {
    if (const auto* line = std::get_if<Line>(&shape)) return &line->subject;
    if (const auto* points = std::get_if<Scatter>(&shape)) return &points->subject;
    if (const auto* label = std::get_if<TextLabel>(&shape)) return &label->subject;
    return nullptr;
}

}  // namespace

bool can_share_labels(const Axis& one, const Axis& other) {
    return one.title == other.title && one.min == other.min && one.max == other.max && one.scale == other.scale;
}

SubjectPair subjects_at_coordinates(const Panel& panel, double x, double y) {
    SubjectPair at{panel.subject, panel.subject};
    set_along(at.a, panel.x, x);
    set_along(at.a, panel.y, y);
    at.b = at.a;
    if (panel.x.dimension == panel.y.dimension) set_along(at.b, panel.x, x);
    return at;
}

Subject subject_of_shape(const Panel& panel, const Shape& shape) {
    Subject subject = panel.subject;
    const Subject* own = own_subject(shape);
    if (!own) return subject;
    subject.trace = own->trace;
    for (int Subject::*part : {&Subject::run, &Subject::layer, &Subject::head, &Subject::token, &Subject::step})
        if (own->*part >= 0) subject.*part = own->*part;
    if (own->head >= 0) subject.query_heads = own->query_heads;
    return subject;
}

Subject subject_of_point(const Panel& panel, const Shape& shape, size_t point) {
    Subject subject = subject_of_shape(panel, shape);
    if (const auto* line = std::get_if<Line>(&shape)) set_along(subject, panel.x, line->x.at(point));
    if (const auto* bars = std::get_if<Bars>(&shape)) set_along(subject, panel.x, bars->x.at(point));
    if (const auto* points = std::get_if<Scatter>(&shape)) {
        set_along(subject, panel.x, points->x.at(point));
        set(subject, points->dimension, static_cast<int>(point));
    }
    return subject;
}

std::string color_scale_title(const ColorScale& scale) {
    return scale.of.empty() ? scale.title : scale.title + ", " + scale.of;
}

double position_on_scale(const ColorScale& scale, double value) {
    double share = 1;
    if (scale.scale == Scale::logarithmic && scale.min > 0) {
        share = value > 0 ? std::log(value / scale.min) / std::log(scale.max / scale.min) : 0;
    } else if (scale.max > scale.min) {
        share = (value - scale.min) / (scale.max - scale.min);
    }
    return scale.map_begin + std::clamp(share, 0.0, 1.0) * (scale.map_end - scale.map_begin);
}

void begin_log_scale_at(ColorScale& scale, double least) {
    if (least >= scale.min) return;
    scale.min = least * (1 - 1e-6);  // maps store f32, and values below the minimum are drawn as background
    scale.scale = Scale::logarithmic;
    scale.whole_numbers = false;
}

std::vector<Figure> split_into_pages(Figure figure) {
    std::vector<Panel> panels = std::move(figure.panels);
    figure.panels.clear();
    size_t last = 0;
    for (const Panel& panel : panels) last = std::max(last, panel.page);
    std::vector<Figure> pages(last + 1, figure);
    for (Panel& panel : panels) {
        Figure& page = pages[panel.page];
        panel.page = 0;
        page.panels.push_back(std::move(panel));
    }
    return pages;
}

}  // namespace kvscope::analysis
