#include "app/gui/shell/quit_question.h"

#include <fmt/format.h>
#include <imgui.h>

#include <utility>

namespace kvscope::gui {

void QuitQuestion::ask(std::string what) {
    what_ = std::move(what);
    is_wanted_ = true;
}

QuitQuestion::Answer QuitQuestion::draw(bool is_under_way, const std::vector<std::string>& waiting) {
    constexpr const char* title = "Quit kvscope?";
    if (std::exchange(is_wanted_, false)) ImGui::OpenPopup(title);
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
    is_shown_ = ImGui::BeginPopupModal(title, nullptr, ImGuiWindowFlags_AlwaysAutoResize);
    if (!is_shown_) return Answer::none;
    Answer answer = Answer::none;
    if (is_under_way)
        ImGui::Text("Still in progress: %s", what_.c_str());
    else
        ImGui::Text("Finished in the meantime: %s", what_.c_str());
    ImGui::TextDisabled("Finished runs are saved. To continue, start the same run again.");
    if (!waiting.empty()) {
        ImGui::Spacing();
        ImGui::TextUnformatted(
            waiting.size() == 1
                ? "1 job waits in the queue. Quit discards it:"
                : fmt::format("{} jobs wait in the queue. Quit discards them:", waiting.size()).c_str());
        const float line = ImGui::GetTextLineHeightWithSpacing();
        ImGui::SetNextWindowSizeConstraints({0, 0}, {FLT_MAX, 12 * line});  // a longer list scrolls
        ImGui::BeginChild("waiting", {0, 0}, ImGuiChildFlags_AutoResizeX | ImGuiChildFlags_AutoResizeY);
        for (const std::string& what : waiting) ImGui::BulletText("%s", what.c_str());
        ImGui::EndChild();
    }
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
