#include "app/gui/shell/start_cards.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

namespace kvscope::gui {
namespace {

void draw_card(const StartCard& card, ImVec2 size, const Theme& theme, const Fonts& fonts) {
    const float em = ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool is_chosen = ImGui::Button(fmt::format("##{}", card.title).c_str(), size);
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddText(fonts.bold, 1.2f * em, {at.x + em, at.y + em}, packed(theme.ink), card.title);
    list->AddText(fonts.text, em, {at.x + em, at.y + 3.2f * em}, packed(theme.ink_quiet), card.text, nullptr,
                  size.x - 2 * em);
    list->AddText(fonts.text, em, {at.x + em, at.y + size.y - 2 * em}, packed(theme.accent), card.action);
    if (is_chosen) card.run();
}

bool draw_recent(const RecentFile& file, const std::string& contents, float folder_at) {
    const bool is_gone = file.state == RecentFile::State::gone;
    const bool is_clicked = !is_gone && ImGui::TextLink(file.name().c_str());
    if (is_gone) ImGui::TextDisabled("%s", file.name().c_str());
    const float after = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x + ImGui::GetFontSize();
    ImGui::SameLine(std::max(folder_at, after));
    if (!contents.empty()) {
        ImGui::TextUnformatted(contents.c_str());
        ImGui::SameLine(0, ImGui::GetFontSize());
    }
    ImGui::TextDisabled("%s%s", file.folder().c_str(), is_gone ? ", not found" : "");
    return is_clicked;
}

/// Draws the recent files and returns the chosen action, if any. Actions may change the lists, so run them afterwards.
std::function<void()> draw_lists(const RecentFiles& recent, const RecentActions& actions) {
    std::function<void()> chosen;
    const float folder_at = 16 * ImGui::GetFontSize();
    if (!recent.traces().empty()) ImGui::TextDisabled("Recent traces and workspaces");
    for (const RecentFile& file : recent.traces()) {
        ImGui::PushID(&file);
        if (draw_recent(file, recent.contents_of(file), folder_at))
            chosen = [&actions, path = file.path] { actions.open_trace(path); };
        if (file.state == RecentFile::State::unfinished) {
            ImGui::SameLine();
            ImGui::TextDisabled("unfinished");
            ImGui::SameLine();
            if (actions.go_on && ImGui::TextLink("Continue the run"))
                chosen = [&actions, path = file.path] { actions.go_on(path); };
        }
        ImGui::PopID();
    }
    if (!actions.load_model || recent.models().empty()) return chosen;
    ImGui::Dummy({0, 0.3f * ImGui::GetFontSize()});
    ImGui::TextDisabled("Recent models");
    for (const RecentFile& file : recent.models()) {
        ImGui::PushID(&file);
        if (draw_recent(file, "", folder_at)) chosen = [&actions, path = file.path] { actions.load_model(path); };
        ImGui::PopID();
    }
    return chosen;
}

}  // namespace

void draw_start_cards(const std::vector<StartCard>& cards, const RecentFiles& recent, const RecentActions& actions,
                      const Theme& theme, const Fonts& fonts) {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float em = ImGui::GetFontSize();
    const float gap = 1.5f * em;
    const float n = static_cast<float>(cards.size());
    const float padding = ImGui::GetStyle().WindowPadding.x;
    const float room = viewport->WorkSize.x - 2 * padding - (n - 1) * gap;
    const ImVec2 size{std::clamp(room / n, 9 * em, 17 * em), room / n < 14 * em ? 12 * em : 9.5f * em};
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const auto n_lines = static_cast<float>(recent.traces().size() + recent.models().size() + 4);
    const float height = std::min(size.y + 6 * em + n_lines * line, viewport->WorkSize.y - 2 * em);
    ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Always, {0.5f, 0.5f});
    ImGui::SetNextWindowSize({n * size.x + (n - 1) * gap + 2 * padding, height});
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
        draw_card(cards[i], size, theme, fonts);
        ImGui::PopID();
    }
    ImGui::Dummy({0, 0.5f * em});
    ImGui::BeginChild("recent");
    const auto chosen = draw_lists(recent, actions);
    ImGui::EndChild();
    ImGui::End();
    if (chosen) chosen();
}

}  // namespace kvscope::gui
