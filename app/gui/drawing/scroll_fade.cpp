#include "app/gui/drawing/scroll_fade.h"

#include <imgui_internal.h>

#include <algorithm>

namespace kvscope::gui {

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
