#include "app/gui/view/view.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "app/gui/session/engine_session.h"

namespace kvscope::gui {

const ViewKind* find_view_kind(const std::string& name) {
    for (const ViewKind& kind : view_kinds())
        if (kind.name == name) return &kind;
    return nullptr;
}

bool View::command_button(const char* label) {
    const bool is_pressed = ImGui::Button(label);
    const bool is_disabled = (ImGui::GetCurrentContext()->CurrentItemFlags & ImGuiItemFlags_Disabled) != 0;
    return is_pressed || (!is_disabled && takes_call(std::string_view(label, ImGui::FindRenderedTextEnd(label))));
}

bool View::takes_call(std::string_view command) {
    if (called_.empty() || called_ != command) return false;
    called_.clear();
    return true;
}

void View::end_call(const ViewHost& host) {
    if (called_.empty()) return;
    const std::string command = std::exchange(called_, {});
    if (host.notice) host.notice(fmt::format("{} is not possible now. The view shows the reason", command), false);
}

namespace {

void draw_centred(const std::string& text, const ImVec4& color) {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float wrap = std::max(room.x * 0.8f, 1.0f);
    const ImVec2 size = ImGui::CalcTextSize(text.c_str(), nullptr, false, wrap);
    const ImVec2 at = ImGui::GetCursorPos();
    ImGui::SetCursorPos({at.x + std::max((room.x - size.x) / 2, 0.0f), at.y + std::max((room.y - size.y) / 2, 0.0f)});
    ImGui::PushStyleColor(ImGuiCol_Text, color);
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + wrap);
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopTextWrapPos();
    ImGui::PopStyleColor();
}

}  // namespace

std::string why_no_prompt(const Document& document) {
    if (!document.reader()->complete()) return "This trace has no prompt yet. The prompt appears after its prefill.";
    if (!document.reader()->result_tasks().empty())
        return "This trace contains task scores but no prompt. See the view Task scores.";
    if (document.reader()->has({}, trace::schema::model::spectrum_q))
        return "This trace contains a model but no prompt. See the view Spectrum.";
    return "This trace contains rows of results but no prompt. Report shows their table and curves.";
}

std::string open_trace_or_demo() {
#ifdef KVSCOPE_WITH_ENGINE
    return "Open a trace (Ctrl+O) or run the demo";
#else
    return "Open a trace (Ctrl+O)";
#endif
}

void draw_nothing(const Context& context, const std::string& why) {
    const EngineStatus status = context.engine ? context.engine->status() : EngineStatus{};
    const bool is_first_run = status.busy() && context.session.documents().empty();
    if (!is_first_run) return draw_centred(why, context.theme.ink_quiet);
    const bool is_loading = status.state == EngineStatus::State::loading;
    draw_centred(fmt::format("{}: {}{}", status.what, status.phase.empty() ? "starting" : status.phase,
                             is_loading ? "" : "\nresults appear here once the prompt is read"),
                 context.theme.ink_quiet);
}
void draw_error(const Context& context, const std::string& what) { draw_centred(what, context.theme.error); }

}  // namespace kvscope::gui
