#include "app/gui/view/trace_badge.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/gui/view/run_label.h"

namespace kvscope::gui {
namespace {

void set_visible(Session& session, const Document& document, bool is_visible) {
    for (const RunKey& key : session.all_runs())
        if (key.document == document.id()) session.set_visible(key, is_visible);
}

void draw_menu(const Context& context, const Document& document) {
    if (!ImGui::BeginPopup("trace menu")) return;
    Session& session = context.session;
    ImGui::TextDisabled("%s", session.name_of(document).c_str());
    const auto all = session.all_runs();
    const bool is_shown = std::any_of(all.begin(), all.end(), [&](const RunKey& key) {
        return key.document == document.id() && session.is_visible(key);
    });
    if (ImGui::MenuItem(is_shown ? "Hide" : "Show")) set_visible(session, document, !is_shown);
    ImGui::SetItemTooltip("all of its runs, in every view");
    if (ImGui::MenuItem("Show only this"))
        for (const auto& other : session.documents()) set_visible(session, *other, other->id() == document.id());
    if (ImGui::MenuItem("Show the file"))
        context.host.open_view("trace", {{"path", "/"}, {shown_document, document.id()}});
    ImGui::SetItemTooltip("%s", document.path().c_str());
    ImGui::Separator();
    if (ImGui::MenuItem("Close")) context.host.close_trace(document.id());
    ImGui::EndPopup();
}

}  // namespace

void draw_trace_badge(const Context& context, const Document& document) {
    ImGui::PushID(document.id());
    ImGui::PushStyleVar(ImGuiStyleVar_FrameRounding, 0.5f * ImGui::GetFontSize());
    ImGui::PushStyleColor(ImGuiCol_Text, context.theme.accent);
    if (ImGui::SmallButton((badge_of(context.session, document) + "##badge").c_str())) ImGui::OpenPopup("trace menu");
    ImGui::PopStyleColor();
    ImGui::PopStyleVar();
    ImGui::SetItemTooltip("%s\nClick: close, hide, show only this, show the file", document.path().c_str());
    draw_menu(context, document);
    ImGui::PopID();
}

void draw_trace_title(const Context& context, const Document& document, const std::string& after) {
    draw_trace_badge(context, document);
    ImGui::SameLine();
    ImGui::PushFont(context.fonts.bold, 0);
    const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(after.c_str()).x;
    ImGui::TextUnformatted((text_that_fits(context.session.name_of(document), room) + after).c_str());
    ImGui::PopFont();
    ImGui::SetItemTooltip("%s%s", document.path().c_str(), after.c_str());
}

}  // namespace kvscope::gui
