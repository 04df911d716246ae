#include "app/gui/inspector/token_notes.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {
namespace {

bool has_notes(const Document& document) {
    return std::ranges::any_of(document.notes, [&](const Note& note) { return note.prompt == document.prompt; });
}

}  // namespace

void TokenNotes::draw(Context& context, Document& document, const InspectedToken& asked) {
    const Cursor selected = context.session.cursor();
    const bool is_several = !asked.is_hover && selected.first_token == asked.token && selected.last_token > asked.token;
    if (asked.is_hover)
        finish(context.session);
    else
        draw_field(context.session, document,
                   {document.id(), document.prompt, asked.token, is_several ? selected.last_token : asked.token});
    draw_list(context, document);
}

void TokenNotes::draw_field(Session& session, const Document& document, const Place& here) {
    if (writing_ != here) finish(session);
    if (!writing_) {
        const Note* note = document.note_on(here.first_token, here.last_token);
        text_ = note ? note->text : std::string();
    }
    ImGui::PushID(fmt::format("{} {} {} {}", here.document, here.prompt, here.first_token, here.last_token).c_str());
    ImGui::SetNextItemWidth(-FLT_MIN);
    text_field("##note", here.first_token == here.last_token ? "note on this token" : "note on these tokens", &text_);
    if (ImGui::IsItemActive())
        writing_ = here;
    else
        finish(session);
    ImGui::SetItemTooltip("Notes are saved in a file next to the trace. An empty note is removed.");
    ImGui::PopID();
}

void TokenNotes::finish(Session& session) {
    if (!writing_) return;
    const Place place = *std::exchange(writing_, std::nullopt);
    Document* document = session.document(place.document);
    if (document) document->write_note(place.prompt, place.first_token, place.last_token, text_);
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
            Cursor cursor = context.session.selection.cursor_in(document.id(), document.prompt);
            cursor.first_token = note.first_token;
            cursor.last_token = note.last_token;
            context.session.selection.set(cursor);
        }
        item_tooltip(note.text);
        ImGui::PopID();
    }
    ImGui::TreePop();
}

}  // namespace kvscope::gui
