#include "app/gui/view/wrapped_field.h"

#include <imgui_internal.h>
#include <misc/cpp/imgui_stdlib.h>

namespace kvscope::gui {
namespace {

/// Of the field that was typed into last Dear ImGui keeps a copy, and takes the length of the text from it when the
/// field is drawn with another width, also where the text has been replaced by a shorter one since.
void drop_outdated_copy(ImGuiID id, const std::string& text) {
    ImGuiInputTextState* copy = ImGui::GetInputTextState(id);
    if (copy && ImGui::GetActiveID() != id && copy->TextLen != static_cast<int>(text.size())) copy->ID = 0;
}

}  // namespace

bool wrapped_field(const char* label, std::string* text, ImVec2 size, ImGuiInputTextFlags flags) {
    drop_outdated_copy(ImGui::GetID(label), *text);
    return ImGui::InputTextMultiline(label, text, size, flags | ImGuiInputTextFlags_WordWrap);
}

}  // namespace kvscope::gui
