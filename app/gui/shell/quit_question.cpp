#include "app/gui/shell/quit_question.h"

#include <imgui.h>

#include <utility>

namespace kvscope::gui {

void QuitQuestion::ask(std::string what, size_t n_waiting) {
    what_ = std::move(what);
    n_waiting_ = n_waiting;
    is_wanted_ = true;
}

QuitQuestion::Answer QuitQuestion::draw(bool is_under_way) {
    constexpr const char* title = "Quit kvscope?";
    if (std::exchange(is_wanted_, false)) ImGui::OpenPopup(title);
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
    is_shown_ = ImGui::BeginPopupModal(title, nullptr, ImGuiWindowFlags_AlwaysAutoResize);
    if (!is_shown_) return Answer::none;
    Answer answer = Answer::none;
    if (is_under_way)
        ImGui::Text("%s: still under way.", what_.c_str());
    else
        ImGui::Text("%s: ended meanwhile.", what_.c_str());
    if (n_waiting_ > 0)
        ImGui::Text(n_waiting_ == 1 ? "%zu job waits in the queue: Quit discards it."
                                    : "%zu jobs wait in the queue: Quit discards them.",
                    n_waiting_);
    ImGui::TextDisabled("What is finished is on disk. The same run, started again, goes on from there.");
    ImGui::Dummy({0, 0.3f * ImGui::GetFontSize()});
    if (ImGui::Button("Quit")) answer = Answer::quit;
    ImGui::SameLine();
    if (ImGui::Button("Stay") || ImGui::IsKeyPressed(ImGuiKey_Escape)) answer = Answer::stay;
    if (ImGui::IsWindowAppearing()) ImGui::SetItemDefaultFocus();
    if (answer != Answer::none) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
    return answer;
}

}  // namespace kvscope::gui
