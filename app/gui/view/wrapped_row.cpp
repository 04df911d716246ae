#include "app/gui/view/wrapped_row.h"

#include <imgui.h>

namespace kvscope::gui {

bool same_line_if_fits(float width) {
    const float right = ImGui::GetWindowPos().x + ImGui::GetContentRegionAvail().x + ImGui::GetCursorPosX();
    const float gap = ImGui::GetStyle().ItemSpacing.x;
    if (ImGui::GetItemRectMax().x + gap + width > right) return false;
    ImGui::SameLine();
    return true;
}

}  // namespace kvscope::gui
