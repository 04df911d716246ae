#include "app/gui/figure/comparison_choice.h"

#include <fmt/format.h>
#include <imgui.h>

#include "app/gui/view/trace_badge.h"

namespace kvscope::gui {

bool draw_comparison_choice(const char* view, const Context& context, AutomaticComparison automatic,
                            Comparison& comparison) {
    using Kind = Comparison::Kind;
    const Session& session = context.session;
    const auto& documents = session.documents();
    if (documents.size() < 2 && !has_pair_to_compare(session)) return false;
    const Compared now = find_compared_runs(session, comparison, automatic, true);
    ImGui::SetNextItemWidth((documents.size() > 1 ? 17 : 10) * ImGui::GetFontSize());
    const std::string shown = now.kind == Kind::none ? "no differences" : now.title;
    ImGui::SetNextItemAllowOverlap();  // for the badges
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::BeginCombo(fmt::format("##compare {}", view).c_str(), shown.c_str())) {
        if (ImGui::Selectable("no differences", now.kind == Kind::none)) comparison = {Kind::none, {}, {}};
        if (has_pair_to_compare(session)) {
            if (ImGui::Selectable("A − B", now.kind == Kind::runs)) comparison = {Kind::runs, {}, {}};
            ImGui::SetItemTooltip("%s", fmt::format("A: {}\nB: {}", session.look(*session.pair.a).label,
                                                    session.look(*session.pair.b).label)
                                            .c_str());
        }
        for (const auto& less : documents) {
            for (const auto& trace : documents) {
                if (trace == less) continue;
                const bool is_chosen = now.trace == trace.get() && now.less == less.get();
                const std::string both = fmt::format("{} − {}", session.name_of(*trace), session.name_of(*less));
                if (ImGui::Selectable(both.c_str(), is_chosen))
                    comparison = {Kind::traces, session.name_of(*trace), session.name_of(*less)};
                ImGui::SetItemTooltip("For each run, subtracts the run with the same policy, parameters and budget.");
            }
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("%s", shown.c_str());
    const ImVec2 text{at.x + ImGui::GetStyle().FramePadding.x, at.y + ImGui::GetStyle().FramePadding.y};
    draw_badges_over_text(context, shown, text);
    return true;
}

void draw_reference_choice(const Session& session, AnswerReference& reference) {
    reference.resolve(session);
    const bool has_a = session.pair.a && session.exists(*session.pair.a);
    ImGui::SetNextItemWidth(9 * ImGui::GetFontSize());
    if (ImGui::BeginCombo("##answers against", fmt::format("against {}", reference.name()).c_str())) {
        if (ImGui::Selectable(full_policy.data(), reference.is_full())) reference.choose_full();
        ImGui::SetItemTooltip("Marks tokens that differ from the full run's answer to the same prompt.");
        if (ImGui::Selectable("A", reference.is_one_run(), has_a ? 0 : ImGuiSelectableFlags_Disabled))
            reference.choose_a();
        if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
            ImGui::SetTooltip("%s", has_a ? session.look(*session.pair.a).label.c_str() : "Choose A in Runs first.");
        for (const auto& document : session.documents()) {
            if (session.documents().size() < 2) break;
            const std::string name = session.name_of(*document);
            if (ImGui::Selectable(name.c_str(), reference.is_trace(name))) reference.choose_trace(name);
            ImGui::SetItemTooltip(
                "Compares each run with the run of this trace that has the same policy, parameters and budget.");
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("The reference run for comparing answers. Its divergence is subtracted in the plot below.");
    reference.resolve(session);
}

}  // namespace kvscope::gui
