#include "app/gui/token_map.h"

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <cmath>

#include "app/gui/prompt_text.h"

namespace kvscope::gui {
namespace {

constexpr int64_t fewest_tokens = 8;  // shown at the deepest zoom

struct Shown {
    double min, max;
};

Shown shown_tokens(const TokenAxis& axis, double n) {
    return axis.max > axis.min ? Shown{axis.min, axis.max} : Shown{0, n};
}

int format_whole(double value, char* text, int size, void*) {
    const double whole = std::round(value);
    if (std::abs(value - whole) > 1e-6) return std::snprintf(text, static_cast<size_t>(size), "%s", "");
    return std::snprintf(text, static_cast<size_t>(size), "%.0f", whole);
}

/// Vertical bands for tokens, drawn over the map.
void draw_band(ImDrawList* list, int64_t first, int64_t last, ImU32 color, bool filled) {
    const ImVec2 origin = ImPlot::GetPlotPos();
    const ImVec2 size = ImPlot::GetPlotSize();
    float left = ImPlot::PlotToPixels(static_cast<double>(first), 0.0).x;
    float right = ImPlot::PlotToPixels(static_cast<double>(last + 1), 0.0).x;
    if (right - left < 1) {
        left = std::floor(left);
        right = left + 1;
    }
    if (filled)
        list->AddRectFilled({left, origin.y}, {right, origin.y + size.y}, color);
    else
        list->AddRect({left - 1, origin.y}, {right + 1, origin.y + size.y}, color, 0.0f, 1.0f);
}

void draw_row(ImDrawList* list, int row, ImU32 color) {
    const ImVec2 origin = ImPlot::GetPlotPos();
    const float right = origin.x + ImPlot::GetPlotSize().x;
    const float top = ImPlot::PlotToPixels(0.0, static_cast<double>(row)).y;
    const float bottom = ImPlot::PlotToPixels(0.0, static_cast<double>(row + 1)).y;
    if (bottom - top >= 5) {
        list->AddRect({origin.x, top}, {right, bottom}, color);
        return;
    }
    // A frame would cover rows as low as this: a wedge on each side points at them.
    const float middle = (top + bottom) / 2;
    constexpr float wedge = 5;
    list->AddTriangleFilled({origin.x, middle - wedge}, {origin.x, middle + wedge}, {origin.x + wedge, middle}, color);
    list->AddTriangleFilled({right, middle - wedge}, {right, middle + wedge}, {right - wedge, middle}, color);
}

/// Which row the cursor means on this map; −1 for none.
int row_of(const Cursor& cursor, const TokenMap& map) {
    if (!map.rows_are_heads) return cursor.layer;
    if (cursor.layer != map.layer) return -1;
    return cursor.kv_head;
}

void draw_selection(Context& context, const TokenMap& map) {
    ImDrawList* list = ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    for (const auto& [first, last] : marked_spans(context.session, *map.document))
        draw_band(list, first, last, packed(context.theme.mark), false);
    const auto pins = map.document->pins.find(map.document->prompt);
    if (pins != map.document->pins.end()) {
        for (const int64_t token : pins->second)
            draw_band(list, token, token, packed(context.theme.warning, 0.8f), false);
    }
    const Cursor& selected = context.session.cursor();
    const bool same_prompt = selected.run.document == map.document->id() && selected.run.prompt == map.document->prompt;
    if (same_prompt && selected.has_tokens())
        draw_band(list, selected.first_token, selected.last_token, packed(context.theme.accent), false);
    if (same_prompt && row_of(selected, map) >= 0) draw_row(list, row_of(selected, map), packed(context.theme.accent));
    const Cursor& hover = context.session.hover();
    if (hover.run.document == map.document->id() && hover.has_tokens()) {
        draw_band(list, hover.first_token, hover.last_token, packed(context.theme.hover, 0.35f), true);
        if (row_of(hover, map) >= 0) draw_row(list, row_of(hover, map), packed(context.theme.hover, 0.35f));
    }
    ImPlot::PopPlotClipRect();
}

}  // namespace

const HeatMap& MapStore::get(const std::string& slot, const std::shared_ptr<const Pyramid>& pyramid) {
    Entry& entry = entries_[slot];
    entry.used = true;
    if (entry.source != pyramid) {
        entry.map = std::make_unique<HeatMap>(*pyramid);
        entry.source = pyramid;
    }
    return *entry.map;
}

void MapStore::drop_unused() {
    std::erase_if(entries_, [](const auto& entry) { return !entry.second.used; });
    for (auto& [slot, entry] : entries_) entry.used = false;
}

int draw_token_map(Context& context, const char* id, ImVec2 size, const TokenMap& map) {
    const auto columns = static_cast<double>(map.map->columns());
    const auto rows = static_cast<double>(map.map->rows());
    TokenAxis& axis = context.session.token_axis;
    Shown shown = shown_tokens(axis, columns);
    const Shown before = shown;
    constexpr ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                                  ImPlotFlags_NoMenus | ImPlotFlags_NoFrame;
    ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(2, 2));
    ImPlot::PushStyleColor(ImPlotCol_PlotBg, ImVec4(0, 0, 0, 0));  // the map fills it
    if (!ImPlot::BeginPlot(id, size, flags)) {
        ImPlot::PopStyleColor();
        ImPlot::PopStyleVar();
        return -1;
    }
    constexpr ImPlotAxisFlags common =
        ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoSideSwitch;
    ImPlot::SetupAxis(ImAxis_X1, nullptr,
                      common | (map.show_token_axis ? 0 : ImPlotAxisFlags_NoTickLabels | ImPlotAxisFlags_NoTickMarks));
    ImPlot::SetupAxis(ImAxis_Y1, nullptr, common | ImPlotAxisFlags_Invert | ImPlotAxisFlags_Lock);
    ImPlot::SetupAxisFormat(ImAxis_X1, format_whole);
    ImPlot::SetupAxisFormat(ImAxis_Y1, format_whole);
    ImPlot::SetupAxisLinks(ImAxis_X1, &shown.min, &shown.max);
    ImPlot::SetupAxisLimitsConstraints(ImAxis_X1, 0, columns);
    ImPlot::SetupAxisZoomConstraints(ImAxis_X1, std::min<double>(fewest_tokens, columns), columns);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0, rows, ImPlotCond_Always);
    ImPlot::SetupFinish();

    const ImVec2 from = ImPlot::GetPlotPos();
    const ImVec2 to = {from.x + ImPlot::GetPlotSize().x, from.y + ImPlot::GetPlotSize().y};
    const ImPlotRect limits = ImPlot::GetPlotLimits();
    map.map->draw(ImPlot::GetPlotDrawList(), from, to, {limits.X.Min, limits.X.Max, limits.Y.Min, limits.Y.Max},
                  map.colors);
    draw_selection(context, map);

    int entered = -1;
    if (ImPlot::IsPlotHovered()) {
        const ImPlotPoint mouse = ImPlot::GetPlotMousePos();
        const auto token = static_cast<int64_t>(std::floor(mouse.x));
        const int row = static_cast<int>(std::floor(mouse.y));
        if (token >= 0 && mouse.x < columns && row >= 0 && mouse.y < rows) {
            Cursor over = context.session.cursor();
            over.run = map.run.valid() ? map.run : RunKey{map.document->id(), map.document->prompt, over.run.run};
            over.first_token = over.last_token = token;
            over.layer = map.rows_are_heads ? map.layer : row;
            over.kv_head = map.rows_are_heads ? row : -1;
            over.query_head = -1;
            context.session.set_hover(over);
            const ImGuiIO& io = ImGui::GetIO();
            const bool clicked =
                ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !io.KeyCtrl && io.MouseDragMaxDistanceSqr[0] < 9;
            if (clicked) {
                Cursor next = context.session.cursor();
                if (io.KeyShift && next.has_tokens()) {
                    next.first_token = std::min(next.first_token, token);
                    next.last_token = std::max(next.last_token, token);
                } else {
                    next = over;
                }
                context.session.selection.set(next);
            }
            if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && !map.rows_are_heads) entered = row;
            if (map.tooltip && !ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
                ImGui::BeginTooltip();
                map.tooltip(row, token);
                ImGui::EndTooltip();
            }
        }
    }
    ImPlot::EndPlot();
    ImPlot::PopStyleColor();
    ImPlot::PopStyleVar();
    if (shown.min != before.min || shown.max != before.max) {
        axis.min = shown.min;
        axis.max = shown.max;
        if (axis.min <= 0 && axis.max >= columns) axis.show_everything();
    }
    return entered;
}

void draw_token_overview(Context& context, const char* id, float height, const Document& document, const HeatMap& map,
                         const MapColors& colors) {
    const auto columns = static_cast<double>(map.columns());
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = std::max(ImGui::GetContentRegionAvail().x, 1.0f);
    ImGui::InvisibleButton(id, {width, height});
    ImDrawList* list = ImGui::GetWindowDrawList();
    map.draw(list, at, {at.x + width, at.y + height}, {0, columns, 0, static_cast<double>(map.rows())}, colors);
    const auto x_of = [&](double token) { return at.x + static_cast<float>(token / columns) * width; };
    for (const auto& [first, last] : marked_spans(context.session, document)) {
        list->AddRectFilled(
            {x_of(static_cast<double>(first)), at.y},
            {std::max(x_of(static_cast<double>(last + 1)), x_of(static_cast<double>(first)) + 2), at.y + 4},
            packed(context.theme.mark));
    }
    TokenAxis& axis = context.session.token_axis;
    if (ImGui::IsItemActive()) {
        const auto token_at = [&](float x) {
            return std::clamp(static_cast<double>((x - at.x) / width) * columns, 0.0, columns);
        };
        const ImGuiIO& io = ImGui::GetIO();
        const double from = token_at(io.MouseClickedPos[0].x);
        const double to = token_at(io.MousePos.x);
        bool* moves = ImGui::GetStateStorage()->GetBoolRef(ImGui::GetItemID());
        if (ImGui::IsItemActivated()) *moves = axis.max > axis.min && from >= axis.min && from <= axis.max;
        const double span = axis.max - axis.min;
        if (*moves && span > 0) {
            axis.min =
                std::clamp(axis.min + static_cast<double>(io.MouseDelta.x / width) * columns, 0.0, columns - span);
            axis.max = axis.min + span;
        } else if (!*moves && std::abs(to - from) >= std::min<double>(fewest_tokens, columns)) {
            axis.min = std::min(from, to);
            axis.max = std::max(from, to);
        } else if (!*moves && span > 0 && !ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
            axis.min = std::clamp(from - span / 2, 0.0, columns - span);
            axis.max = axis.min + span;
        }
    }
    if (axis.max > axis.min) {
        const ImU32 veil = packed(context.theme.panel, 0.6f);
        list->AddRectFilled(at, {x_of(axis.min), at.y + height}, veil);
        list->AddRectFilled({x_of(axis.max), at.y}, {at.x + width, at.y + height}, veil);
        list->AddRect({x_of(axis.min), at.y}, {x_of(axis.max), at.y + height}, packed(context.theme.accent));
    }
    if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) axis.show_everything();
    ImGui::SetItemTooltip(
        "the whole prompt: drag over a part to see that alone, drag the part to move it, double-click "
        "for everything");
}

}  // namespace kvscope::gui
