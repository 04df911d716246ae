#include "app/gui/view/run_options_form.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <type_traits>

#include "app/gui/view/widgets.h"
#include "app/gui/view_data/run_form.h"

namespace kvscope::gui {
namespace {

using engine::RunOption;
using engine::RunOptions;

struct Choice {
    std::string value, text;
};

std::vector<Choice> choices_of(const RunOption& option, const std::vector<engine::DeviceChoice>& devices) {
    std::vector<Choice> all;
    for (const auto& value : option.choices) all.push_back({value, value});
    if (!option.of_machine) return all;
    for (const auto& device : devices) all.push_back({device.name, fmt::format("{}: {}", device.name, device.text)});
    return all;
}

void choose(const char* label, std::string& value, const std::vector<Choice>& choices) {
    if (!ImGui::BeginCombo(label, value.c_str())) return;
    for (const auto& choice : choices)
        if (ImGui::Selectable(choice.text.c_str(), choice.value == value)) value = choice.value;
    ImGui::EndCombo();
}

template <class T>
void draw_value(const char* label, T& value, const std::vector<Choice>& choices) {
    if constexpr (std::is_same_v<T, bool>) {
        ImGui::Checkbox(label, &value);
    } else if constexpr (std::is_same_v<T, double>) {
        ImGui::InputDouble(label, &value, 0, 0, "%.6g");
    } else if constexpr (std::is_same_v<T, std::string>) {
        choose(label, value, choices);
    } else {
        constexpr auto type = sizeof(T) == sizeof(int) ? ImGuiDataType_S32
                              : std::is_signed_v<T>    ? ImGuiDataType_S64
                                                       : ImGuiDataType_U64;
        ImGui::InputScalar(label, type, &value);
    }
}

void draw_help(const RunOption& option, const std::string& usual) {
    if (!ImGui::BeginItemTooltip()) return;
    ImGui::PushTextWrapPos(26 * ImGui::GetFontSize());
    plain_text(fmt::format("{}.{}{}", option.help, option.remark.empty() ? "" : " ", option.remark));
    ImGui::TextDisabled("default %s", usual.c_str());
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

void draw_row(const RunOption& option, RunOptions& options, const std::vector<Choice>& choices, const Theme& theme) {
    const std::string usual = option.text({});
    const bool differs = !option.is_default(options);
    ImGui::AlignTextToFramePadding();
    ImGui::PushStyleColor(ImGuiCol_Text, differs ? theme.accent : theme.ink);
    ImGui::TextUnformatted(option.name.c_str());
    ImGui::PopStyleColor();
    draw_help(option, usual);
    ImGui::SameLine(9 * ImGui::GetFontSize());
    const float room = differs ? ImGui::GetFrameHeight() + ImGui::GetStyle().ItemSpacing.x : 0;
    ImGui::SetNextItemWidth(-std::max(room, 1.0f));
    const std::string label = fmt::format("##{}", option.name);
    std::visit([&](auto member) { draw_value(label.c_str(), options.*member, choices); }, option.member);
    if (differs) {
        ImGui::SameLine();
        if (ImGui::SmallButton(fmt::format("↺##{}", option.name).c_str())) option.reset(options);
        ImGui::SetItemTooltip("reset to %s", usual.c_str());
    }
    draw_problem(option.problem(options), theme);
    if (const auto* on = std::get_if<bool RunOptions::*>(&option.member);
        on && options.*(*on) && !option.while_on.empty())
        quiet_text(option.while_on);
}

}  // namespace

void draw_problem(const std::string& problem, const Theme& theme) {
    if (!problem.empty()) wrapped_text(problem, theme.error);
}

void edit_run_options(RunOptions& options, bool of_task, const std::vector<engine::DeviceChoice>& devices,
                      const std::string& why_only_cpu, const Theme& theme) {
    for (const RunOption& option : engine::run_options()) {
        if (option.in_form != RunOption::InForm::row || (of_task && !applies_to_tasks(option))) continue;
        const auto choices = choices_of(option, devices);
        if (option.of_machine && devices.empty() && option.is_default(options)) continue;  // devices are not known yet
        draw_row(option, options, choices, theme);
        if (option.of_machine && !why_only_cpu.empty()) quiet_text(why_only_cpu);
    }
}

}  // namespace kvscope::gui
