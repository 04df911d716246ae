#include "app/gui/view/rename_run_dialog.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include "analysis/runs/run_style.h"
#include "app/gui/session/renaming.h"
#include "app/gui/view/text_field.h"

namespace kvscope::gui {
namespace {

constexpr const char* popup = "Rename run";

}  // namespace

void RenameDialog::ask(const Session& session, const RunKey& run) {
    if (can_rename_run(session, run)) wanted_ = run;
}

void RenameDialog::draw(Session& session) {
    const bool opens = wanted_ && session.exists(*wanted_);
    if (opens) {
        run_ = *wanted_;
        label_ = session.attributes(run_).given_label;
        in_all_prompts_ = true;
        ImGui::OpenPopup(popup);
    }
    wanted_.reset();
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
    if (!ImGui::BeginPopup(popup)) return;
    if (!session.exists(run_)) {
        ImGui::CloseCurrentPopup();
        return ImGui::EndPopup();
    }
    const std::string recorded = analysis::recorded_or_default_label(session.attributes(run_));
    ImGui::TextUnformatted(recorded.c_str());
    ImGui::SetNextItemWidth(24 * ImGui::GetFontSize());
    if (opens) ImGui::SetKeyboardFocusHere();
    const bool is_entered = text_field("##label", recorded.c_str(), &label_, ImGuiInputTextFlags_EnterReturnsTrue);
    ImGui::SetItemTooltip(
        "The app and figures use this label; the trace does not change. Leave the field empty to restore the trace's "
        "label.");
    const size_t n_alike = alike_runs_in_other_prompts(session, run_).size();
    if (n_alike > 0) ImGui::Checkbox("Also in the other prompts", &in_all_prompts_);
    const std::string objection = label_problem(session, run_, label_);
    if (!objection.empty()) ImGui::TextDisabled("%s", objection.c_str());
    ImGui::BeginDisabled(!objection.empty());
    if ((ImGui::Button("Rename") || is_entered) && objection.empty()) {
        set_run_label(session, run_, label_, in_all_prompts_);
        ImGui::CloseCurrentPopup();
    }
    ImGui::EndDisabled();
    ImGui::EndPopup();
}

}  // namespace kvscope::gui
