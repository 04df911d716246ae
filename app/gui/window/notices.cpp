#include "app/gui/window/notices.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cfloat>

namespace kvscope::gui {
namespace {

constexpr double notice_seconds = 6;
// Widths in ems: the menus at the left of the menu bar, and the palette's button at its right.
constexpr float menus_ems = 19, beside_ems = 10;
constexpr size_t most_shown = 2;

bool draw_one(const std::string& name, const std::string& text, bool is_error, const Theme& theme, float& top) {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const ImGuiStyle& style = ImGui::GetStyle();
    const float em = ImGui::GetFontSize();
    const float right = viewport->Pos.x + viewport->Size.x - beside_ems * em;
    const float most = std::clamp(right - viewport->Pos.x - menus_ems * em, 12 * em, 60 * em);
    ImGui::SetNextWindowPos({right, top}, ImGuiCond_Always, {1, 0});
    ImGui::SetNextWindowSizeConstraints({0, 0}, {most, FLT_MAX});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {style.WindowPadding.x, style.FramePadding.y});
    ImGui::PushStyleColor(ImGuiCol_Border, is_error ? theme.error : theme.accent);
    ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetStyleColorVec4(ImGuiCol_PopupBg));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
    ImGui::Begin(name.c_str(), nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking |
                     ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav);
    if (!ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup))
        ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());  // above the menu bar
    ImGui::PushTextWrapPos(most - style.WindowPadding.x);
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopTextWrapPos();
    const bool is_clicked = ImGui::IsWindowHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
    top += ImGui::GetWindowHeight() + 4;
    ImGui::End();
    ImGui::PopStyleVar(2);
    ImGui::PopStyleColor(2);
    return is_clicked;
}

}  // namespace

void Notices::add(const std::string& text, bool is_error) {
    is_error ? spdlog::error("{}", text) : spdlog::info("{}", text);
    all_.push_back(text);
    n_errors_ += is_error ? 1 : 0;
    shown_.push_back({text, is_error, ImGui::GetTime() + (is_error ? 2 : 1) * notice_seconds});
    window_.draw_again();
}

void Notices::replace(const std::string& kind, const std::string& text) {
    std::erase_if(shown_, [&](const Shown& shown) { return shown.kind == kind; });
    add(text);
    shown_.back().kind = kind;
}

Notice Notices::function() {
    return [this](const std::string& text, bool is_error) { add(text, is_error); };
}

void Notices::draw(const Theme& theme) {
    const double now = ImGui::GetTime();
    std::erase_if(shown_, [&](const Shown& shown) { return shown.until < now; });
    std::vector<Shown*> order;
    for (auto it = shown_.rbegin(); it != shown_.rend(); ++it) order.push_back(&*it);
    std::stable_partition(order.begin(), order.end(), [](const Shown* notice) { return notice->is_error; });
    const std::vector<Shown*> waiting(order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), most_shown)),
                                      order.end());
    order.resize(order.size() - waiting.size());
    float top = ImGui::GetMainViewport()->Pos.y;
    for (size_t i = 0; i < order.size(); ++i)
        if (draw_one(fmt::format("##notice {}", i), order[i]->text, order[i]->is_error, theme, top))
            order[i]->until = 0;
    for (Shown* notice : waiting) notice->until = std::max(notice->until, now + notice_seconds);
    if (!waiting.empty() && draw_one("##more notices", fmt::format("{} more in Log", waiting.size()),
                                     waiting.front()->is_error, theme, top))
        for (Shown* notice : waiting) notice->until = 0;
    for (const Shown* notice : order) window_.draw_within(std::max(notice->until - now, 0.0));
}

}  // namespace kvscope::gui
