#include "app/gui/window/frame_has_input.h"

#include <imgui.h>

namespace kvscope::gui {

bool has_input() {
    const ImGuiIO& io = ImGui::GetIO();
    if (io.InputQueueCharacters.Size > 0 || io.MouseWheel != 0 || io.MouseWheelH != 0) return true;
    for (int button = 0; button < ImGuiMouseButton_COUNT; ++button) {
        if (ImGui::IsMouseClicked(button) || ImGui::IsMouseReleased(button)) return true;
    }
    for (int key = ImGuiKey_Keyboard_BEGIN; key < ImGuiKey_Keyboard_END; ++key) {
        if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(key))) return true;
    }
    return false;
}

}  // namespace kvscope::gui
