#include "app/gui/shell/status_bar.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>

#include "analysis/tables/table_format.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/prompt_text.h"
#include "app/gui/view_data/span_reports.h"

namespace kvscope::gui {
namespace {

/// Forces left-to-right order even if names or texts in the sentence are written from right to left.
std::string from_left(std::string sentence) {
    constexpr std::string_view mark = "\u200e";
    if (needs_shaping(sentence)) sentence.insert(0, mark);
    return sentence;
}

void draw_mark_answer(Session& session, const Theme& theme) {
    const Document* document = session.focus();
    if (session.mark.empty() || !document || document->prompt >= document->reader()->n_prompts()) return;
    const auto places = marked_spans(session, *document);
    if (places.empty()) {
        disabled_text(from_left(fmt::format("“{}” is not in this prompt", session.mark)));
        return;
    }
    const Cursor selected = session.cursor();
    const auto here = std::ranges::find(places, std::pair(selected.first_token, selected.last_token));
    const size_t at = here == places.end() ? 0 : static_cast<size_t>(here - places.begin());
    const auto [first, last] = places[at];
    std::string line = fmt::format("“{}”", session.mark);
    if (places.size() > 1) line += fmt::format(" {} of {}", at + 1, places.size());
    if (const RunKey told = session.displayed_run(); session.exists(told)) {
        static const TaskSlot<SpanReports> slot;
        const auto answer = ask_span_reports(session, slot, *document, first, last);
        const bool is_of_it = answer.value && answer.value->first == first && answer.value->last == last;
        for (const auto& [run, report] : is_of_it ? answer.value->runs : decltype(SpanReports::runs){})
            if (run == told) line += " · " + report.sentence;
    }
    line = from_left(line);
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const bool goes_on = ImGui::InvisibleButton("###marked text", {text_width(line), ImGui::GetFrameHeight()});
    if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    draw_text(ImGui::GetWindowDrawList(), {corner.x, corner.y + ImGui::GetStyle().FramePadding.y}, packed(theme.mark),
              line);
    ImGui::SetItemTooltip("%s\nClick to select the next occurrence.", line.c_str());
    if (!goes_on) return;
    const auto& next = places[here == places.end() ? 0 : (at + 1) % places.size()];
    Cursor cursor = selected;
    std::tie(cursor.first_token, cursor.last_token) = next;
    session.selection.set(cursor);
}

std::string trace_line(const Session& session, const Document& focus, float room) {
    const auto& reader = *focus.reader();
    if (!reader.has_model() || reader.n_prompts() <= focus.prompt) return {};
    const auto& model = reader.model();
    const std::string incomplete = reader.complete() ? "" : " · incomplete trace";
    const std::string tokens =
        analysis::format_count(reader.prompt(focus.prompt).visible_tokens()) + " tokens" + incomplete;
    const std::string shape = fmt::format("{} layers · {} KV heads · {}", model.n_layers, model.n_kv_heads, tokens);
    const std::string with_model =
        fmt::format("{} · {} · {}", displayed_model_name(session.model_names, model), model.dtype, shape);
    const std::string file = session.name_of(focus) + ": ";
    for (const std::string& line : {from_left(file + with_model), with_model, shape, tokens})
        if (ImGui::CalcTextSize(line.c_str()).x <= room) return line;
    return {};
}

}  // namespace

void draw_status_bar(Session& session, EngineSession* engine, const Theme& theme) {
    const ImGuiWindowFlags flags =
        ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_MenuBar;
    ImGui::PushStyleColor(ImGuiCol_MenuBarBg, theme.ground);
    if (ImGui::BeginViewportSideBar("##status", nullptr, ImGuiDir_Down, ImGui::GetFrameHeight(), flags) &&
        ImGui::BeginMenuBar()) {
        if (engine) {
            const EngineStatus status = engine->status();
            if (status.busy()) {
                const std::string left =
                    status.seconds_left >= 0 ? fmt::format("  {:.0f} s left", status.seconds_left) : "";
                ImGui::ProgressBar(static_cast<float>(status.share), {12 * ImGui::GetFontSize(), 0},
                                   fmt::format("{}{}", status.phase, left).c_str());
                ImGui::TextUnformatted(from_left(status.what).c_str());
                if (ImGui::SmallButton("Cancel")) engine->cancel();
                if (const size_t n = engine->waiting().size(); n > 0) {
                    ImGui::TextDisabled("+ %zu in the queue", n);
                    ImGui::SetItemTooltip("The Run view lists the jobs.");
                }
            } else if (const auto stopped = engine->stopped_run()) {
                ImGui::TextDisabled("cancelled: %s", stopped->what.c_str());
                if (ImGui::SmallButton("Continue")) engine->continue_stopped_run();
                item_tooltip(stopped->rest);
            } else if (status.model.empty()) {
                ImGui::TextDisabled("no model loaded");
            } else {
                ImGui::TextDisabled("model loaded: %s", status.model.c_str());
                ImGui::SetItemTooltip("model of the next run, loaded from %s", status.model_path.c_str());
            }
        }
        const float end = ImGui::GetWindowWidth() - ImGui::GetFontSize();
        ImGui::PushClipRect(ImGui::GetWindowPos(), {ImGui::GetWindowPos().x + end, FLT_MAX}, true);
        if (session.pair.flicker && session.exists(*session.pair.flicker)) {
            ImGui::PushStyleColor(ImGuiCol_Text, theme.accent);
            ImGui::TextUnformatted(("flicker: " + session.look(*session.pair.flicker).label).c_str());
            ImGui::PopStyleColor();
            ImGui::TextDisabled("Space: other run · Esc: stop");
        }
        draw_mark_answer(session, theme);
        if (session.tasks.n_pending() > 0) ImGui::TextDisabled("computing");
        if (const Document* focus = session.focus()) {
            const float room = end - ImGui::GetCursorPosX();
            if (const std::string line = trace_line(session, *focus, room); !line.empty())
                ImGui::TextDisabled("%s", line.c_str());
        }
        ImGui::PopClipRect();
        ImGui::EndMenuBar();
    }
    ImGui::End();
    ImGui::PopStyleColor();
}

}  // namespace kvscope::gui
