#include "app/gui/shell/start_cards.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

namespace kvscope::gui {

void draw_start_cards(const std::vector<StartCard>& cards, const std::vector<std::string>& recent_traces,
                      const std::function<void(const std::string&)>& open, const Theme& theme, const Fonts& fonts) {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float em = ImGui::GetFontSize();
    const float gap = 1.5f * em;
    const float n = static_cast<float>(cards.size());
    const float padding = ImGui::GetStyle().WindowPadding.x;
    const float room = viewport->WorkSize.x - 2 * padding - (n - 1) * gap;
    const ImVec2 size{std::clamp(room / n, 9 * em, 17 * em), room / n < 14 * em ? 12 * em : 9.5f * em};
    ImGui::SetNextWindowPos(viewport->GetCenter(), ImGuiCond_Always, {0.5f, 0.5f});
    ImGui::SetNextWindowSize({n * size.x + (n - 1) * gap + 2 * padding, size.y + 10 * em});
    ImGui::Begin("Start", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking |
                     ImGuiWindowFlags_NoBackground);
    ImGui::PushFont(fonts.bold, 1.7f * ImGui::GetStyle().FontSizeBase);
    ImGui::TextUnformatted("kvscope");
    ImGui::PopFont();
    ImGui::TextDisabled("What KV-cache compression does inside a language model");
    ImGui::Dummy({0, em});
    for (size_t i = 0; i < cards.size(); ++i) {
        if (i > 0) ImGui::SameLine(0, gap);
        ImGui::PushID(static_cast<int>(i));
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const bool chosen = ImGui::Button(fmt::format("##{}", cards[i].title).c_str(), size);
        ImDrawList* list = ImGui::GetWindowDrawList();
        list->AddText(fonts.bold, 1.2f * em, {at.x + em, at.y + em}, packed(theme.ink), cards[i].title);
        list->AddText(fonts.text, em, {at.x + em, at.y + 3.2f * em}, packed(theme.ink_quiet), cards[i].text, nullptr,
                      size.x - 2 * em);
        list->AddText(fonts.text, em, {at.x + em, at.y + size.y - 2 * em}, packed(theme.accent), cards[i].action);
        ImGui::PopID();
        if (chosen) cards[i].run();
    }
    if (!recent_traces.empty()) {
        ImGui::Dummy({0, 0.5f * em});
        ImGui::TextDisabled("Recent");
        const auto recent = recent_traces;  // opening one changes the list
        for (size_t i = 0; i < std::min<size_t>(recent.size(), 3); ++i) {
            if (ImGui::TextLink(recent[i].c_str())) open(recent[i]);
        }
    }
    ImGui::End();
}

}  // namespace kvscope::gui
