#pragma once

#include <imgui.h>

#include <string>

namespace kvscope::gui {

/// As ImGui::InputTextWithHint, for any script: Dear ImGui sets one glyph per code point from left to right. Text that
/// needs more is set by Pango, with caret, selection and mouse to match: Left goes left in Arabic, and Backspace erases
/// an emoji with all its parts.
bool text_field(const char* label, const char* hint, std::string* text, ImGuiInputTextFlags flags = 0,
                ImGuiInputTextCallback callback = nullptr, void* data = nullptr);

/// As ImGui::InputTextMultiline, for any script; a line that is too long for the field goes on in the next.
bool wrapped_field(const char* label, std::string* text, ImVec2 size, ImGuiInputTextFlags flags = 0);

}  // namespace kvscope::gui
