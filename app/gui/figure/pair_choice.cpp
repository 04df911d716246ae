#include "app/gui/figure/pair_choice.h"

#include <fmt/format.h>
#include <imgui.h>

#include <optional>
#include <string>

#include "app/gui/view/run_label.h"
#include "app/gui/view/wrapped_row.h"

namespace kvscope::gui {
namespace {

float choice_width(const Session& session) { return (session.documents().size() > 1 ? 19 : 13) * ImGui::GetFontSize(); }

void choose_run(const Context& context, const char* letter, const char* view, const RunKey& shown,
                std::optional<RunKey>& slot) {
    Session& session = context.session;
    const float em = ImGui::GetFontSize();
    const auto square = [&](const RunKey& key, float height) {
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float side = 0.65f * em;
        const float top = at.y + (height - side) / 2;
        ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + side, top + side},
                                                  packed(on_ground(session.look(key).style.color, context.theme)));
        ImGui::Dummy({side, height});
        ImGui::SameLine();
    };
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(letter);
    ImGui::SameLine();
    if (shown.valid()) square(shown, ImGui::GetFrameHeight());
    const float width = choice_width(session);
    ImGui::SetNextItemWidth(width);
    const float room = width - ImGui::GetFrameHeight() - 2 * ImGui::GetStyle().FramePadding.x;
    const std::string preview = shown.valid() ? label_that_fits(session.look(shown), room) : "choose a run";
    if (ImGui::BeginCombo(fmt::format("##{} {}", view, letter).c_str(), preview.c_str(), ImGuiComboFlags_HeightLarge)) {
        for (const RunKey& key : session.all_runs()) {
            if (session.attributes(key).status != "complete") continue;
            ImGui::PushID(key.text().c_str());
            square(key, ImGui::GetTextLineHeight());
            if (ImGui::Selectable(session.look(key).label.c_str(), key == shown)) {
                slot = key;
            }
            ImGui::PopID();
        }
        ImGui::EndCombo();
    }
    if (shown.valid()) ImGui::SetItemTooltip("%s", session.look(shown).label.c_str());
}

}  // namespace

void choose_pair(const Context& context, const char* view) {
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
