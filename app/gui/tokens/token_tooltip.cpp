#include "app/gui/tokens/token_tooltip.h"

#include <fmt/format.h>
#include <imgui.h>

#include "analysis/tables/table_format.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/session/measures.h"

namespace kvscope::gui {

void draw_shared_character(const PromptText& prompt, size_t token) {
    const std::string_view whole = whole_characters(prompt, token, token);
    if (whole.size() == prompt.begins[token + 1] - prompt.begins[token]) return;
    ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled));
    text_item("in " + shown_token(whole));
    ImGui::PopStyleColor();
    ImGui::SameLine();
}

void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token) {
    const auto t = static_cast<size_t>(token);
    ImGui::BeginTooltip();
    text_item(one.prompt->shown[t]);
    ImGui::SameLine();
    draw_shared_character(*one.prompt, t);
    ImGui::PushFont(context.fonts.text, 0);
    ImGui::TextDisabled("token %s · id %d%s", analysis::format_count(token).c_str(), one.prompt->ids[t],
                        token >= one.document->reader()->prompt(one.document->prompt).visible_tokens()
                            ? " · after what policies saw: kept whole, in no budget"
                            : "");
    if (const Note* note = note_at(*one.document, token)) {
        ImGui::PushTextWrapPos(30 * ImGui::GetFontSize());
        ImGui::TextUnformatted(note->text.c_str());
        ImGui::PopTextWrapPos();
    }
    const float side = 0.65f * ImGui::GetFontSize();
    bool any = false;
    for (const RunKey& key : runs) {
        if (key.document != one.run.document || key.prompt != one.run.prompt) continue;
        const Document* document = context.session.document(key);
        if (token >= document->reader()->prompt(key.prompt).visible_tokens()) break;
        const auto answer = prompt_counts(context.session, key);
        if (!answer.value) continue;
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const RunLook look = context.session.look(key);
        const float top = at.y + (ImGui::GetTextLineHeight() - side) / 2;
        ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + side, top + side},
                                                  packed(on_ground(look.style.color, context.theme)));
        ImGui::Dummy({side, 0});
        ImGui::SameLine();
        if (key == one.run) ImGui::PushFont(context.fonts.bold, 0);
        ImGui::TextUnformatted(look.label.c_str());
        if (key == one.run) ImGui::PopFont();
        ImGui::SameLine();
        ImGui::TextDisabled("%s", where_kept(*answer.value->kept, token).c_str());
        any = true;
    }
    if (any) ImGui::TextDisabled("%s", measure_definition("layers"));
    ImGui::PopFont();
    ImGui::EndTooltip();
}

}  // namespace kvscope::gui
