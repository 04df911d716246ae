#include "app/gui/figure/pair_choice.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <optional>
#include <string>

#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/trace_badge.h"
#include "app/gui/view/wrapped_row.h"

namespace kvscope::gui {
namespace {

float choice_width(const Session& session) {
    const float em = ImGui::GetFontSize();
    const auto [a, b] = session.compared();
    float widest = 0;
    for (const RunKey& run : {a, b})
        if (run.valid()) widest = std::max(widest, ImGui::CalcTextSize(session.look(run).label.c_str()).x);
    const float around = ImGui::GetFrameHeight() + 3 * ImGui::GetStyle().FramePadding.x;
    const float room = std::max(ImGui::GetContentRegionMax().x - 4 * em, 13 * em);
    return std::min(std::clamp(widest + around, 13 * em, 24 * em), room);
}

void choose_run(const Context& context, const char* letter, const char* view, const RunKey& shown,
                std::optional<RunKey>& slot) {
    Session& session = context.session;
    const auto chip = [&](const RunKey& key, float height) {
        draw_inline_run_marker(context.theme, session.look(key).style, height);
    };
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(letter);
    ImGui::SameLine();
    if (shown.valid()) chip(shown, ImGui::GetFrameHeight());
    const float width = choice_width(session);
    ImGui::SetNextItemWidth(width);
    const float room = width - ImGui::GetFrameHeight() - 2 * ImGui::GetStyle().FramePadding.x;
    const std::string preview =
        shown.valid() ? beginning_that_fits(label_that_fits(session.look(shown), room), room) : "choose a run";
    ImGui::SetNextItemAllowOverlap();  // for the badge
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::BeginCombo(fmt::format("##{} {}", view, letter).c_str(), preview.c_str(), ImGuiComboFlags_HeightLarge)) {
        for (const RunKey& key : session.all_runs()) {
            if (session.attributes(key).status != "complete") continue;
            ImGui::PushID(key.text().c_str());
            chip(key, ImGui::GetTextLineHeight());
            if (ImGui::Selectable(session.look(key).label.c_str(), key == shown)) {
                slot = key;
            }
            ImGui::PopID();
        }
        ImGui::EndCombo();
    }
    if (shown.valid()) ImGui::SetItemTooltip("%s", session.look(shown).label.c_str());
    const ImVec2 text{at.x + ImGui::GetStyle().FramePadding.x, at.y + ImGui::GetStyle().FramePadding.y};
    draw_badges_over_text(context, preview, text);
}

}  // namespace

void draw_pair_choice(const Context& context, const char* view) {
    Session& session = context.session;
    const auto [a, b] = session.compared();
    choose_run(context, "A", view, a, session.pair.a);
    ImGui::SameLine();
    if (ImGui::Button(fmt::format("swap##{}", view).c_str()) && a.valid() && b.valid()) {
        session.pair.a = b;
        session.pair.b = a;
    }
    same_line_if_fits(choice_width(session) + 3 * ImGui::GetFontSize());
    choose_run(context, "B", view, b, session.pair.b);
}

}  // namespace kvscope::gui
