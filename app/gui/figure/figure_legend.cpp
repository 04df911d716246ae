#include "app/gui/figure/figure_legend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/drawing/ticks.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/figure/figure_axes.h"
#include "app/gui/figure/figure_shapes.h"
#include "app/gui/view/run_label.h"

namespace kvscope::gui {
namespace {

using analysis::ColorScale;
using analysis::LegendEntry;

constexpr int gradient_steps = 24;

float label_width(const std::string& text) { return measure_small_text(text).x; }

std::string number_text(const ColorScale& scale, double value) {
    if (scale.whole_numbers || (std::abs(value) >= 10 && value == std::round(value)))
        return analysis::format_count(std::llround(value));
    return fmt::format("{:.3g}", value);
}

std::string title_text(const ColorScale& scale) {
    return analysis::axis_title(analysis::color_scale_title(scale), scale.unit, 0);
}

struct Bar {
    float title, low, bar, high, ground;
    float width() const { return title + low + bar + high + ground; }
};

Bar measure(const ColorScale& scale, float width) {
    const float em = ImGui::GetFontSize();
    const float gap = 0.4f * em;
    const float ground = scale.background_label.empty() ? 0 : 1.6f * em + label_width(scale.background_label);
    Bar parts{label_width(title_text(scale)) + 1.5f * gap, label_width(number_text(scale, scale.min)) + gap, 0,
              label_width(number_text(scale, scale.max)) + gap, ground};
    parts.bar = std::clamp(width - parts.width(), 2 * em, 8 * em);
    return parts;
}

float entry_width(const LegendEntry& entry) {
    const float symbol = entry.symbol == LegendEntry::Symbol::none ? 0 : 2;
    return symbol * ImGui::GetFontSize() + label_width(entry.label);
}

/// Calls draw_bar and draw_entry with each item's position relative to the first item. @returns the total height
template <class DrawBar, class DrawEntry>
float flow(const analysis::Figure& figure, bool legend, bool color_bars, float width, const DrawBar& draw_bar,
           const DrawEntry& draw_entry) {
    const float em = ImGui::GetFontSize();
    const float line = 1.25f * em;
    float x = 0, y = 0;
    bool any = false;
    const auto next = [&](float item, const auto& draw, float with_next = 0) {
        if (x > 0 && x + item + with_next > width) {
            x = 0;
            y += line;
        }
        draw(ImVec2{x, y});
        x += item + em;
        any = true;
    };
    if (color_bars) {
        for (const ColorScale& scale : figure.color_scales) {
            const Bar parts = measure(scale, width);
            if (parts.width() <= width) {
                next(parts.width(), [&](ImVec2 at) { draw_bar(scale, at, ImVec2{at.x + parts.title, at.y}); });
                continue;
            }
            ImVec2 title;  // on a separate line
            next(parts.title, [&](ImVec2 at) { title = at; });
            next(parts.width() - parts.title, [&](ImVec2 at) { draw_bar(scale, title, at); });
        }
    }
    if (legend) {
        for (size_t i = 0; i < figure.legend.size(); ++i) {
            const LegendEntry& entry = figure.legend[i];
            const bool is_heading = entry.symbol == LegendEntry::Symbol::none && i + 1 < figure.legend.size();
            next(
                entry_width(entry), [&](ImVec2 at) { draw_entry(entry, at); },
                is_heading ? em + entry_width(figure.legend[i + 1]) : 0);
        }
    }
    return any ? y + line : 0;
}

}  // namespace

float legend_height(const analysis::Figure& figure, bool legend, bool color_bars, float width) {
    const float height = flow(
        figure, legend, color_bars, width, [](const ColorScale&, ImVec2, ImVec2) {}, [](const LegendEntry&, ImVec2) {});
    return height > 0 ? height + ImGui::GetStyle().ItemSpacing.y : 0;
}

namespace {

struct LegendPen {
    const Context& context;
    ImVec2 origin;
    float width = 0;
    ImDrawList* list = ImGui::GetWindowDrawList();
    float em = ImGui::GetFontSize();
    float size = small_text * em;
    const Theme& theme = context.theme;

    void text(float x, float y, const ImVec4& color, const std::string& words) const {
        list->AddText(ImGui::GetFont(), size, {std::round(x), std::round(y)}, packed(color), words.c_str());
    }

    void gradient(const ColorScale& scale, float x, float y, float bar_width) const {
        const MapColors colors = make_map_colors(scale, theme);
        const double span = scale.max - scale.min;
        const int steps = scale.whole_numbers && span < gradient_steps ? static_cast<int>(span) + 1 : gradient_steps;
        for (int i = 0; i < steps; ++i) {
            const double share = steps > 1 ? static_cast<double>(i) / (steps - 1) : 1;
            const double value = scale.scale == analysis::Scale::logarithmic
                                     ? scale.min * std::pow(scale.max / scale.min, share)
                                     : scale.min + share * span;
            const float each = bar_width / static_cast<float>(steps);
            const float left = x + static_cast<float>(i) * each;
            list->AddRectFilled({std::floor(left), y + 0.1f * size}, {std::floor(left + each), y + 0.95f * size},
                                map_value_to_color(colors, static_cast<float>(value)));
        }
    }

    void bar(const ColorScale& scale, ImVec2 title, ImVec2 at) const {
        const Bar parts = measure(scale, width);
        text(origin.x + title.x, origin.y + title.y, theme.ink_quiet, title_text(scale));
        float x = origin.x + at.x;
        const float y = origin.y + at.y;
        text(x, y, theme.ink_quiet, number_text(scale, scale.min));
        x += parts.low;
        gradient(scale, x, y, parts.bar);
        x += parts.bar + 0.4f * em;
        text(x, y, theme.ink_quiet, number_text(scale, scale.max));
        if (scale.background_label.empty()) return;
        x += parts.high + 0.4f * em;
        list->AddRectFilled({x, y + 0.1f * size}, {x + 0.85f * size, y + 0.95f * size}, packed(theme.ground));
        list->AddRect({x, y + 0.1f * size}, {x + 0.85f * size, y + 0.95f * size}, packed(theme.line));
        text(x + 1.1f * em, y, theme.ink_quiet, scale.background_label);
    }

    void entry(const LegendEntry& each, ImVec2 at) const {
        float x = origin.x + at.x;
        const float y = origin.y + at.y;
        const float middle = y + 0.55f * size;
        const ImU32 color = packed(adapt_area_color_to_theme(each.style.color, theme));
        const std::array<ImVec2, 2> points = {ImVec2{x, middle}, ImVec2{x + 1.6f * em, middle}};
        switch (each.symbol) {
            case LegendEntry::Symbol::line:
                draw_styled_polyline(theme, each.style, points, 1, list);
                draw_marker(theme, each.style.marker, {x + 0.8f * em, middle}, 0.45f * em, each.style.color, 1, list);
                break;
            case LegendEntry::Symbol::patch:
                list->AddRectFilled({x + 0.8f * em, y + 0.15f * size}, {x + 1.6f * em, y + 0.9f * size}, color);
                break;
            case LegendEntry::Symbol::marker:
                draw_marker(theme, each.style.marker, {x + 1.2f * em, middle}, 0.5f * em, each.style.color, 1, list);
                break;
            case LegendEntry::Symbol::none:
                x -= 2 * em;
                break;
        }
        text(x + 2 * em, y, theme.ink, each.label);
        draw_full_text_tooltip({x + 2 * em, y}, each.label, each.whole);
        draw_badges_over_text(context, each.label, {std::round(x + 2 * em), std::round(y)}, size);
    }
};

}  // namespace

void draw_legend(const Context& context, const analysis::Figure& figure, bool legend, bool color_bars, float width) {
    const LegendPen pen{context, ImGui::GetCursorScreenPos(), width};
    const float height = flow(
        figure, legend, color_bars, width,
        [&](const ColorScale& scale, ImVec2 title, ImVec2 at) { pen.bar(scale, title, at); },
        [&](const LegendEntry& entry, ImVec2 at) { pen.entry(entry, at); });
    ImGui::Dummy({width, height});
}

}  // namespace kvscope::gui
