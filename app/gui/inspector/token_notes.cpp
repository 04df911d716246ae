#include "app/gui/inspector/token_notes.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>

#include "analysis/tables/table_format.h"

namespace kvscope::gui {
namespace {

bool has_notes(const Document& document) {
    return std::any_of(document.notes.begin(), document.notes.end(),
                       [&](const Note& note) { return note.prompt == document.prompt; });
}

}  // namespace

void TokenNotes::draw(Context& context, Document& document, const TokenQuestion& asked) {
    const Cursor selected = context.session.cursor();
    const bool is_one = asked.is_hover || selected.last_token <= selected.first_token;
    const int64_t first = asked.token;
    const int64_t last = is_one ? first : selected.last_token;
    if (!asked.is_hover) {
        const Note* note = document.note_on(first, last);
        if (!is_writing_) text_ = note ? note->text : std::string();
        ImGui::PushID(fmt::format("{} {} {} {}", document.id(), document.prompt, first, last).c_str());
        ImGui::SetNextItemWidth(-FLT_MIN);
        ImGui::InputTextWithHint("##note", is_one ? "note on this token" : "note on these tokens", &text_);
        is_writing_ = ImGui::IsItemActive();
        if (ImGui::IsItemDeactivatedAfterEdit()) document.write_note(first, last, text_);
        ImGui::SetItemTooltip("kept in a file beside the trace; an empty one is taken away");
        ImGui::PopID();
    }
    draw_list(context, document);
}

void TokenNotes::draw_list(Context& context, const Document& document) {
    if (!has_notes(document) || !ImGui::TreeNodeEx("Notes on this prompt")) return;
    for (const Note& note : document.notes) {
        if (note.prompt != document.prompt) continue;
        ImGui::PushID(&note);
        const std::string where = note.first_token == note.last_token
                                      ? analysis::format_count(note.first_token)
                                      : fmt::format("{}–{}", analysis::format_count(note.first_token),
                                                    analysis::format_count(note.last_token));
        if (ImGui::Selectable(fmt::format("{}  {}", where, note.text).c_str())) {
            Cursor cursor = context.session.cursor();
            if (cursor.run.document != document.id() || cursor.run.prompt != document.prompt)
                cursor.run = {document.id(), document.prompt, {}};
            cursor.first_token = note.first_token;
            cursor.last_token = note.last_token;
            context.session.selection.set(cursor);
        }
        ImGui::SetItemTooltip("%s", note.text.c_str());
        ImGui::PopID();
    }
    ImGui::TreePop();
}

}  // namespace kvscope::gui
