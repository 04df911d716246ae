#pragma once

#include <imgui.h>

#include <string>

namespace kvscope::gui {

/// Like ImGui::InputTextWithHint, with support for complex scripts and emoji. Pango shapes these texts, and the caret
/// follows their visual order: Left moves left in Arabic, and Backspace deletes a whole emoji.
bool text_field(const char* label, const char* hint, std::string* text, ImGuiInputTextFlags flags = 0,
                ImGuiInputTextCallback callback = nullptr, void* data = nullptr);

/// Like ImGui::InputTextMultiline, with support for complex scripts and line wrapping.
bool wrapped_field(const char* label, std::string* text, ImVec2 size, ImGuiInputTextFlags flags = 0);

}  // namespace kvscope::gui
