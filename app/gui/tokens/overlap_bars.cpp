#include "app/gui/tokens/overlap_bars.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "analysis/tables/number_text.h"
#include "app/gui/drawing/pan_limits.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {
namespace {

constexpr float map_padding = 2;      // space above and below the map's rows
constexpr double least_span = 0.001;  // smallest visible range

void take_keys(Session& session, int n_layers) {
    const ImGuiID owner = ImGui::GetItemID();
    const auto is_pressed = [&](ImGuiKey key) {
        ImGui::SetKeyOwner(key, owner);
        return ImGui::IsKeyPressed(key, ImGuiInputFlags_Repeat, owner);
    };
    const int layer = session.cursor().layer;
    int next = layer;
    if (is_pressed(ImGuiKey_UpArrow)) next = layer - 1;
    if (is_pressed(ImGuiKey_DownArrow)) next = layer + 1;
    if (is_pressed(ImGuiKey_Home)) next = 0;
    if (is_pressed(ImGuiKey_End)) next = n_layers - 1;
    next = std::clamp(next, 0, n_layers - 1);
    if (next != layer && !ImGui::GetIO().WantTextInput) session.selection.select_layer(next);
}

}  // namespace

void OverlapBars::draw(Context& context, const std::vector<double>& overlap, ImVec2 size) {
    if (overlap.empty()) return;
    Session& session = context.session;
    const auto n_layers = static_cast<int>(overlap.size());
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton("##difference overlap", size);
    const ImVec2 from{at.x, at.y + map_padding};
    const ImVec2 to{at.x + size.x, at.y + size.y - map_padding};
    const float each = (to.y - from.y) / static_cast<float>(n_layers);
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->PushClipRect(from, to, true);
    list->AddRectFilled(from, to, packed(context.theme.ground));
    const auto x_of = [&](double share) {
        return from.x + static_cast<float>((share - from_) / (to_ - from_)) * (to.x - from.x);
    };
    for (const double share : {0.25, 0.5, 0.75})
        list->AddLine({x_of(share), from.y}, {x_of(share), to.y}, packed(context.theme.ink, 0.09f));
    for (int layer = 0; layer < n_layers; ++layer) {
        const float top = from.y + each * (static_cast<float>(layer) + 0.15f);
        list->AddRectFilled({x_of(0), top},
                            {x_of(overlap[static_cast<size_t>(layer)]), top + std::max(0.7f * each, 1.0f)},
                            packed(context.theme.accent));
    }
    const auto outline = [&](int layer, ImU32 color) {
        if (layer < 0 || layer >= n_layers) return;
        const float top = from.y + each * static_cast<float>(layer);
        list->AddRect({from.x, top}, {to.x, top + each}, color);
    };
    outline(session.cursor().layer, packed(context.theme.accent));
    outline(session.hover().layer, packed(context.theme.hover, 0.35f));
    list->PopClipRect();
    draw_axis(context, from, to);

    if (ImGui::IsItemFocused()) take_keys(session, n_layers);
    const bool is_dragged = ImGui::IsItemActive();
    if (!is_dragged && !ImGui::IsItemHovered()) return;
    const ImVec2 mouse = ImGui::GetMousePos();
    const int layer = std::clamp(static_cast<int>(std::floor((mouse.y - from.y) / each)), 0, n_layers - 1);
    Cursor over = session.cursor();
    over.layer = layer;
    over.kv_head = over.query_head = -1;
    session.set_hover(over);
    if (is_dragged && session.cursor().layer != layer) session.selection.select_layer(layer);
    ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
    zoom(from_ + (to_ - from_) * static_cast<double>((mouse.x - from.x) / (to.x - from.x)));
    ImGui::SetTooltip("layer %d: %s same entries\n%s", layer,
                      analysis::format_share(overlap[static_cast<size_t>(layer)]).c_str(),
                      measure_definition("overlap"));
}

void OverlapBars::zoom(double at) {
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return fit();
    const float wheel = ImGui::GetIO().MouseWheel;
    if (wheel == 0) return;
    const double span = to_ - from_;
    const double zoomed = std::clamp(span * std::pow(wheel_zoom, static_cast<double>(wheel)), least_span, 1.0);
    from_ = std::clamp(at - (at - from_) / span * zoomed, 0.0, 1 - zoomed);
    to_ = from_ + zoomed;
}

void OverlapBars::draw_axis(const Context& context, ImVec2 from, ImVec2 to) const {
    const float below = to.y + map_padding + ImGui::GetStyle().ItemSpacing.y + 3 * context.scale;
    const auto label = [&](const std::string& text, float place) {
        const float x = from.x + place * (to.x - from.x - ImGui::CalcTextSize(text.c_str()).x);
        ImGui::GetWindowDrawList()->AddText({x, below}, packed(context.theme.ink_quiet), text.c_str());
    };
    const int decimals = to_ - from_ > 0.1 ? 0 : 1;
    label(fmt::format("{:.{}f}", 100 * from_, from_ > 0 ? decimals : 0), 0);
    label("same entries", 0.5f);
    label(fmt::format("{:.{}f} %", 100 * to_, to_ < 1 ? decimals : 0), 1);
}

}  // namespace kvscope::gui
