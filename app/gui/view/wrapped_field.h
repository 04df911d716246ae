#pragma once

#include <imgui.h>

#include <string>

namespace kvscope::gui {

/// A field of several lines that wraps its text, which the program may change while nobody types into it.
bool wrapped_field(const char* label, std::string* text, ImVec2 size, ImGuiInputTextFlags flags = 0);

}  // namespace kvscope::gui
