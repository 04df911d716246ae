#include "app/gui/tokens/token_map.h"

#include <imgui_internal.h>
#include <implot.h>

#include <algorithm>
#include <cmath>

#include "analysis/drawing/ticks.h"
#include "app/gui/drawing/pan_limits.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {
namespace {

constexpr int64_t fewest_tokens = 8;  // smallest number of visible tokens

struct Shown {
    double min, max;
};

Shown shown_tokens(const TokenAxis& axis, double n) {
    return axis.max > axis.min ? Shown{axis.min, axis.max} : Shown{0, n};
}

/// Returns the end of the token axis when everything is visible. The maps of all prompts have the same end.
double extent_of_axis(const Session& session, double columns) {
    return std::max(columns, static_cast<double>(session.n_axis_tokens()));
}

/// Returns ticks at whole numbers from `min` to `max`, at most as many as fit.
std::vector<analysis::Tick> whole_ticks(double min, double max, float room, float room_each) {
    analysis::Axis axis;
    axis.min = min;
    axis.max = max;
    axis.whole_numbers = true;
    if (!(max > min)) return {{min, std::to_string(std::lround(min))}};
    return analysis::ticks_for(axis, std::max<size_t>(2, static_cast<size_t>(room / room_each))).ticks;
}

float row_axis_width(size_t rows, float tick) { return ImGui::CalcTextSize(rows > 100 ? "000" : "00").x + 3 * tick; }

void draw_row_axis(const Context& context, ImVec2 from, float height, size_t rows, float tick) {
    const float line = ImGui::GetFontSize();
    const ImU32 color = packed(context.theme.ink_quiet);
    ImDrawList* list = ImGui::GetWindowDrawList();
    float free_from = from.y;
    for (const auto& [row, label, whole] : whole_ticks(0, static_cast<double>(rows) - 1, height, 1.7f * line)) {
        const float middle = from.y + height * static_cast<float>((row + 0.5) / static_cast<double>(rows));
        const float top = std::clamp(middle - line / 2, from.y, std::max(from.y, from.y + height - line));
        if (top < free_from) continue;
        free_from = top + line;
        list->AddLine({from.x - tick, middle}, {from.x, middle}, color);
        list->AddText({from.x - 2 * tick - ImGui::CalcTextSize(label.c_str()).x, top}, color, label.c_str());
    }
}

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

/// Marks a search match with wedges at the upper and lower edge, which leave the cells visible.
void draw_found(ImDrawList* list, int64_t first, int64_t last, ImU32 color) {
    const float top = ImPlot::GetPlotPos().y;
    const float bottom = top + ImPlot::GetPlotSize().y;
    const float left = ImPlot::PlotToPixels(static_cast<double>(first), 0.0).x;
    const float right = ImPlot::PlotToPixels(static_cast<double>(last + 1), 0.0).x;
    const float middle = (left + right) / 2;
    constexpr float wedge = 4;
    list->AddTriangleFilled({middle - wedge, top}, {middle + wedge, top}, {middle, top + wedge}, color);
    list->AddTriangleFilled({middle - wedge, bottom}, {middle, bottom - wedge}, {middle + wedge, bottom}, color);
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
    // A frame would cover rows of this height, so wedges at both sides mark the cell.
    const float middle = (top + bottom) / 2;
    constexpr float wedge = 5;
    list->AddTriangleFilled({origin.x, middle - wedge}, {origin.x, middle + wedge}, {origin.x + wedge, middle}, color);
    list->AddTriangleFilled({right, middle - wedge}, {right, middle + wedge}, {right - wedge, middle}, color);
}

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
    if (const auto found = searched_spans(context.session, *map.document))
        for (const auto& [first, last] : *found) draw_found(list, first, last, packed(context.theme.ink));
    const auto pins = map.document->pins.find(map.document->prompt);
    if (pins != map.document->pins.end())
        for (const int64_t token : pins->second) draw_band(list, token, token, packed(context.theme.pin, 0.8f), false);
    const Cursor selected = context.session.cursor();
    const bool same_prompt = selected.run.document == map.document->id() && selected.run.prompt == map.document->prompt;
    if (same_prompt && selected.has_tokens())
        draw_band(list, selected.first_token, selected.last_token, packed(context.theme.accent), false);
    if (same_prompt && row_of(selected, map) >= 0) draw_row(list, row_of(selected, map), packed(context.theme.accent));
    const Cursor hover = context.session.hover();
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

namespace {

void set_up_map_axes(Shown& shown, double extent, double rows) {
    constexpr ImPlotAxisFlags common =
        ImPlotAxisFlags_NoDecorations | ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoSideSwitch;
    ImPlot::SetupAxis(ImAxis_X1, nullptr, common);
    ImPlot::SetupAxis(ImAxis_Y1, nullptr, common | ImPlotAxisFlags_Invert | ImPlotAxisFlags_Lock);
    ImPlot::SetupAxisLinks(ImAxis_X1, &shown.min, &shown.max);
    ImPlot::SetupAxisZoomConstraints(ImAxis_X1, std::min<double>(fewest_tokens, extent), INFINITY);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0, rows, ImPlotCond_Always);
    ImPlot::SetupFinish();
    keep_axis_within_limits(ImAxis_X1, 0, extent);
}

void draw_cells(const TokenMap& map, ImVec2 from, ImVec2 to) {
    const auto columns = static_cast<double>(map.map->columns());
    const ImPlotRect limits = ImPlot::GetPlotLimits();
    if (limits.X.Min >= columns) return;  // a shorter prompt ends before the axis does
    const double last = std::min(limits.X.Max, columns);
    const auto share = static_cast<float>((last - limits.X.Min) / (limits.X.Max - limits.X.Min));
    map.map->draw(ImPlot::GetPlotDrawList(), from, {from.x + share * (to.x - from.x), to.y},
                  {limits.X.Min, last, limits.Y.Min, limits.Y.Max}, map.colors);
}

/// Returns the map's width: at most `wanted` pixels, or the available width for 0. Stacked maps end at the same x.
float shared_width(Session& session, float wanted) {
    const float width = wanted > 0 ? wanted : ImGui::GetContentRegionAvail().x;
    const ImGuiWindow& window = *ImGui::GetCurrentWindow()->RootWindow;
    const float free = window.WorkRect.Max.x - (ImGui::GetCursorScreenPos().x + width);
    return width - (session.map_margins.share(window.Pos.x, window.Pos.x + window.Size.x, free) - free);
}

void select_cell(Session& session, const Cursor& over) {
    Cursor next = over;
    const Cursor now = session.cursor();
    const bool is_of_prompt = now.run.document == over.run.document && now.run.prompt == over.run.prompt;
    if (ImGui::GetIO().KeyShift && now.has_tokens() && is_of_prompt) {
        next = now;
        next.first_token = std::min(next.first_token, over.first_token);
        next.last_token = std::max(next.last_token, over.first_token);
    }
    session.selection.set(next);
}

int answer_mouse(Context& context, const TokenMap& map) {
    if (!ImPlot::IsPlotHovered()) return -1;
    const ImPlotPoint mouse = ImPlot::GetPlotMousePos();
    const auto token = static_cast<int64_t>(std::floor(mouse.x));
    const int row = static_cast<int>(std::floor(mouse.y));
    const bool is_over_cell = token >= 0 && mouse.x < static_cast<double>(map.map->columns()) && row >= 0 &&
                              mouse.y < static_cast<double>(map.map->rows());
    if (!is_over_cell) return -1;
    Session& session = context.session;
    Cursor over = map.run.valid() ? session.selection.cursor_at(map.run)
                                  : session.selection.cursor_in(map.document->id(), map.document->prompt);
    over.first_token = over.last_token = token;
    over.layer = map.rows_are_heads ? map.layer : row;
    over.kv_head = map.rows_are_heads ? row : -1;
    over.query_head = -1;
    session.set_hover(over, true);
    const ImGuiIO& io = ImGui::GetIO();
    if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !io.KeyCtrl && io.MouseDragMaxDistanceSqr[0] < 9)
        select_cell(session, over);
    const bool is_entered = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && !map.rows_are_heads;
    if (map.tooltip && !ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
        begin_tooltip_beside();
        map.tooltip(row, token);
        end_tooltip_beside();
    }
    return is_entered ? row : -1;
}

}  // namespace

DrawnTokenMap draw_token_map(Context& context, const char* id, ImVec2 size, const TokenMap& map) {
    const auto columns = static_cast<double>(map.map->columns());
    const double extent = extent_of_axis(context.session, columns);
    TokenAxis& axis = context.session.token_axis;
    Shown shown = shown_tokens(axis, extent);
    const Shown before = shown;
    constexpr ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                                  ImPlotFlags_NoMenus | ImPlotFlags_NoFrame;
    const float tick = 3 * context.scale;
    const float row_axis = row_axis_width(map.map->rows(), tick);
    size.x = std::max(shared_width(context.session, size.x) - row_axis, 1.0f);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + row_axis);
    ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(0, 2));
    ImPlot::PushStyleColor(ImPlotCol_PlotBg, ImVec4(0, 0, 0, 0));  // the map covers the background
    if (!ImPlot::BeginPlot(id, size, flags)) {
        ImPlot::PopStyleColor();
        ImPlot::PopStyleVar();
        return {};
    }
    set_up_map_axes(shown, extent, static_cast<double>(map.map->rows()));
    const ImVec2 from = ImPlot::GetPlotPos();
    const ImVec2 to = {from.x + ImPlot::GetPlotSize().x, from.y + ImPlot::GetPlotSize().y};
    draw_cells(map, from, to);
    draw_selection(context, map);

    DrawnTokenMap drawn{from.x, to.x};
    drawn.entered = answer_mouse(context, map);
    ImPlot::EndPlot();
    ImPlot::PopStyleColor();
    ImPlot::PopStyleVar();
    draw_row_axis(context, from, to.y - from.y, map.map->rows(), tick);
    if (shown.min != before.min || shown.max != before.max) {
        axis.min = shown.min;
        axis.max = shown.max;
        if (axis.min <= 0 && axis.max >= extent) axis.show_everything();
    }
    return drawn;
}

void draw_token_axis(const Context& context, const DrawnTokenMap& place, int64_t n_tokens) {
    const Shown shown =
        shown_tokens(context.session.token_axis, extent_of_axis(context.session, static_cast<double>(n_tokens)));
    const float width = place.right - place.left;
    const float em = ImGui::GetFontSize();
    const float tick = 3 * context.scale;
    const float top = ImGui::GetCursorScreenPos().y;
    const ImU32 color = packed(context.theme.ink_quiet);
    ImDrawList* list = ImGui::GetWindowDrawList();
    for (const auto& [token, label, whole] :
         whole_ticks(std::ceil(shown.min), std::ceil(shown.max) - 1, width, 5 * em)) {
        const float x = place.left + width * static_cast<float>((token + 0.5 - shown.min) / (shown.max - shown.min));
        const float text = ImGui::CalcTextSize(label.c_str()).x;
        list->AddLine({x, top}, {x, top + tick}, color);
        list->AddText({std::clamp(x - text / 2, place.left, std::max(place.left, place.right - text)), top + tick},
                      color, label.c_str());
    }
    ImGui::Dummy({1, em + tick});
}

void draw_token_overview(Context& context, const char* id, const DrawnTokenMap& place, float height,
                         const Document& document, const HeatMap& map, const MapColors& colors) {
    const auto own_columns = static_cast<double>(map.columns());
    const double columns = extent_of_axis(context.session, own_columns);
    const ImVec2 at{place.left, ImGui::GetCursorScreenPos().y};
    const float width = std::max(place.right - place.left, 1.0f);
    ImGui::SetCursorScreenPos(at);
    ImGui::InvisibleButton(id, {width, height});
    ImDrawList* list = ImGui::GetWindowDrawList();
    const auto x_of = [&](double token) { return at.x + static_cast<float>(token / columns) * width; };
    map.draw(list, at, {x_of(own_columns), at.y + height}, {0, own_columns, 0, static_cast<double>(map.rows())},
             colors);
    for (const auto& [first, last] : marked_spans(context.session, document)) {
        list->AddRectFilled(
            {x_of(static_cast<double>(first)), at.y},
            {std::max(x_of(static_cast<double>(last + 1)), x_of(static_cast<double>(first)) + 2), at.y + 4},
            packed(context.theme.mark));
    }
    if (const auto found = searched_spans(context.session, document)) {
        for (const auto& [first, last] : *found) {
            const float middle = (x_of(static_cast<double>(first)) + x_of(static_cast<double>(last + 1))) / 2;
            list->AddTriangleFilled({middle - 4, at.y + height}, {middle, at.y + height - 4},
                                    {middle + 4, at.y + height}, packed(context.theme.ink));
        }
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
        "the whole prompt: drag to zoom into a part, drag the marked part to move it, double-click to show everything");
}

}  // namespace kvscope::gui
