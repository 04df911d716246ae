#include "app/gui/view/widgets.h"

#include <imgui_internal.h>

#include <algorithm>

namespace kvscope::gui {

namespace {

// Keys under which a window stores the size of its last tooltip.
constexpr const char* width_id = "tooltip width";
constexpr const char* height_id = "tooltip height";

struct Place {
    ImVec2 at;
    float widest;  ///< maximum text width, in pixels
};

/// Returns the place for a tooltip, whose size was `size` in the last frame.
Place place_beside(const ImGuiWindow& view, ImVec2 size) {
    const float em = ImGui::GetFontSize();
    const float gap = 0.4f * em;
    const float widest = 30 * em;
    const float least_beside = 12 * em;
    const float padding = 2 * ImGui::GetStyle().WindowPadding.x;
    const ImGuiViewport& viewport = *ImGui::GetMainViewport();
    const ImVec2 begin = viewport.Pos;
    const ImVec2 end{begin.x + viewport.Size.x, begin.y + viewport.Size.y};
    const ImVec2 from = view.Pos;
    const ImVec2 to{from.x + view.Size.x, from.y + view.Size.y};
    const ImVec2 mouse = ImGui::GetMousePos();
    const float right = end.x - to.x - gap;
    const float left = from.x - begin.x - gap;
    Place place{{}, widest};
    if (std::max(left, right) >= least_beside) {
        const bool is_right = right >= std::min(size.x, widest + padding) || right >= left;
        place.widest = std::min(widest, (is_right ? right : left) - padding);
        place.at = {is_right ? to.x + gap : from.x - gap - size.x, mouse.y};
    } else {
        const float away = 3 * ImGui::GetTextLineHeightWithSpacing();
        const bool fits_below = mouse.y + away + size.y <= end.y;
        const bool fits_above = mouse.y - away - size.y >= begin.y;
        const bool is_below = fits_below && (to.y - mouse.y >= mouse.y - from.y || !fits_above);
        const float within = std::max(to.x - size.x, from.x);
        place.at = {std::min(mouse.x + gap, within), is_below ? mouse.y + away : mouse.y - away - size.y};
    }
    place.at.x = std::clamp(place.at.x, begin.x, std::max(end.x - size.x, begin.x));
    place.at.y = std::clamp(place.at.y, begin.y, std::max(end.y - size.y, begin.y));
    return place;
}

}  // namespace

void begin_tooltip_beside() {
    const float em = ImGui::GetFontSize();
    const ImGuiStorage& known = *ImGui::GetStateStorage();
    const Place place = place_beside(
        *ImGui::GetCurrentWindow()->RootWindow,
        {known.GetFloat(ImGui::GetID(width_id), 16 * em), known.GetFloat(ImGui::GetID(height_id), 8 * em)});
    ImGui::SetNextWindowPos(place.at);
    ImGui::BeginTooltip();
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + place.widest);
}

void end_tooltip_beside() {
    ImGui::PopTextWrapPos();
    const ImVec2 size = ImGui::GetWindowSize();
    ImGui::EndTooltip();
    ImGuiStorage& known = *ImGui::GetStateStorage();
    known.SetFloat(ImGui::GetID(width_id), size.x);
    known.SetFloat(ImGui::GetID(height_id), size.y);
}

void draw_tooltip_beside(const std::string& text) {
    begin_tooltip_beside();
    ImGui::TextUnformatted(text.c_str());
    end_tooltip_beside();
}

bool same_line_if_fits(float width) {
    const float right = ImGui::GetWindowPos().x + ImGui::GetContentRegionAvail().x + ImGui::GetCursorPosX();
    const float gap = ImGui::GetStyle().ItemSpacing.x;
    if (ImGui::GetItemRectMax().x + gap + width > right) return false;
    ImGui::SameLine();
    return true;
}

float button_width(const char* label) { return ImGui::CalcTextSize(label).x + 2 * ImGui::GetStyle().FramePadding.x; }

void plain_text(const std::string& text) { ImGui::TextUnformatted(text.c_str()); }

void disabled_text(const std::string& text) { ImGui::TextDisabled("%s", text.c_str()); }

void text_in(ImFont* font, const std::string& text) {
    ImGui::PushFont(font, 0);
    plain_text(text);
    ImGui::PopFont();
}

void wrapped_text(const std::string& text, const ImVec4& color) {
    ImGui::PushStyleColor(ImGuiCol_Text, color);
    ImGui::TextWrapped("%s", text.c_str());
    ImGui::PopStyleColor();
}

void quiet_text(const std::string& text) { wrapped_text(text, ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled)); }

void item_tooltip(const std::string& text) { ImGui::SetItemTooltip("%s", text.c_str()); }

void tooltip_of_disabled(const std::string& text) {
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled))
        ImGui::SetTooltip("%s", text.c_str());
}

void draw_scroll_fade(const Theme& theme) {
    if (ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1) return;
    const ImRect inner = ImGui::GetCurrentWindow()->InnerRect;
    const float height = std::min(2 * ImGui::GetTextLineHeightWithSpacing(), inner.GetHeight() / 3);
    const ImU32 clear = packed(theme.panel, 0), full = packed(theme.panel);
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->PushClipRect(inner.Min, inner.Max);
    list->AddRectFilledMultiColor({inner.Min.x, inner.Max.y - height}, inner.Max, clear, clear, full, full);
    list->PopClipRect();
}

}  // namespace kvscope::gui
