#include "app/gui/view/parameter_form.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/gui/view/text_field.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {
namespace {

using policies::Parameter;
using policies::ParameterKind;
using policies::ParameterValue;

/// Returns the upper end of a slider. If the parameter has no maximum, the end is at least four times the default.
double slider_end(const Parameter& parameter, double value) {
    if (std::isfinite(parameter.range.high)) return parameter.range.high;
    double end = parameter.kind == ParameterKind::integer ? 64 : 4;
    if (const auto* integer = std::get_if<int64_t>(&parameter.fallback))
        end = std::max(end, 4 * static_cast<double>(*integer));
    if (const auto* real = std::get_if<double>(&parameter.fallback)) end = std::max(end, 4 * *real);
    return std::max(end, value);
}

double slider_begin(const Parameter& parameter) { return std::isfinite(parameter.range.low) ? parameter.range.low : 0; }

void take_width(float room_after) {
    ImGui::SetNextItemWidth(std::max(ImGui::GetContentRegionAvail().x - room_after, ImGui::GetFontSize()));
}

std::optional<ParameterValue> integer_field(const Parameter& parameter, int64_t value, int64_t most) {
    auto low = static_cast<int64_t>(std::ceil(slider_begin(parameter)));
    if (parameter.range.low_open) low = static_cast<int64_t>(std::floor(slider_begin(parameter))) + 1;
    const int64_t high =
        most > 0 ? std::max(most, value) : static_cast<int64_t>(slider_end(parameter, static_cast<double>(value)));
    int64_t now = value;
    const bool wide = high - low > 200;
    if (!ImGui::SliderScalar("##value", ImGuiDataType_S64, &now, &low, &high, "%lld",
                             wide ? ImGuiSliderFlags_Logarithmic : 0))
        return std::nullopt;
    if (parameter.range.odd && now % 2 == 0) now += now > value ? 1 : -1;
    return now == value ? std::nullopt : std::optional<ParameterValue>(now);
}

std::optional<ParameterValue> real_field(const Parameter& parameter, double value) {
    constexpr double step = 0.001;
    const double low = slider_begin(parameter) + (parameter.range.low_open ? step : 0);
    const double high = slider_end(parameter, value) - (parameter.range.high_open ? step : 0);
    double now = value;
    if (!ImGui::SliderScalar("##value", ImGuiDataType_Double, &now, &low, &high, "%.6g")) return std::nullopt;
    now = std::round(now * 1000) / 1000;
    return now == value ? std::nullopt : std::optional<ParameterValue>(now);
}

std::optional<ParameterValue> number_or_automatic(const Parameter& parameter, const ParameterValue& value, int64_t most,
                                                  float room_after) {
    bool automatic = std::holds_alternative<policies::Automatic>(value);
    const bool toggled = ImGui::Checkbox("auto", &automatic);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("auto: %s", parameter.automatic.c_str());
    if (toggled && automatic) return policies::Automatic{};
    const bool is_real = parameter.kind == ParameterKind::real;
    if (toggled && is_real) return (slider_begin(parameter) + slider_end(parameter, 0)) / 2;
    if (toggled) return static_cast<int64_t>(std::max(1.0, slider_begin(parameter)));
    if (automatic) return std::nullopt;
    ImGui::SameLine();
    take_width(room_after);
    if (is_real) return real_field(parameter, std::get<double>(value));
    return integer_field(parameter, std::get<int64_t>(value), most);
}

std::optional<ParameterValue> choice_field(const Parameter& parameter, const std::string& value) {
    std::optional<ParameterValue> chosen;
    if (!ImGui::BeginCombo("##value", value.c_str())) return chosen;
    for (const auto& choice : parameter.choices)
        if (ImGui::Selectable(choice.c_str(), choice == value) && choice != value) chosen = choice;
    ImGui::EndCombo();
    return chosen;
}

std::optional<ParameterValue> field_of(const Parameter& parameter, const ParameterValue& value, int64_t most,
                                       float room_after) {
    if (!parameter.automatic.empty()) return number_or_automatic(parameter, value, most, room_after);
    take_width(room_after);
    switch (parameter.kind) {
        case ParameterKind::integer:
            return integer_field(parameter, std::get<int64_t>(value), most);
        case ParameterKind::real:
            return real_field(parameter, std::get<double>(value));
        case ParameterKind::choice:
            return choice_field(parameter, std::get<std::string>(value));
        case ParameterKind::boolean: {
            bool now = std::get<bool>(value);
            if (ImGui::Checkbox("##value", &now)) return now;
            return std::nullopt;
        }
        case ParameterKind::text:
        case ParameterKind::integers:
        case ParameterKind::reals:
        case ParameterKind::file:
        case ParameterKind::seed: {
            std::string now = std::get<std::string>(value);
            if (text_field("##value", "", &now)) return now;
            return std::nullopt;
        }
    }
    return std::nullopt;
}

void draw_help(const Parameter& parameter, const ParameterField& field) {
    if (!ImGui::BeginItemTooltip()) return;
    ImGui::PushTextWrapPos(26 * ImGui::GetFontSize());
    ImGui::TextUnformatted(parameter.help.c_str());
    const std::string range = parameter.range.text();
    if (!range.empty()) ImGui::TextDisabled("%s; default %s", range.c_str(), to_text(parameter.fallback).c_str());
    if (!field.obstacle.empty()) ImGui::TextUnformatted(field.obstacle.c_str());
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

}  // namespace

void wrapped_tooltip(const std::string& text) {
    if (!ImGui::BeginItemTooltip()) return;
    ImGui::PushTextWrapPos(30 * ImGui::GetFontSize());
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

bool edit_parameter(const Parameter& parameter, policies::ParameterValues& values, const Theme& theme,
                    const ParameterField& field) {
    const ParameterValue value = values.value(parameter.name);
    const ParameterValue& reference = field.reference ? field.reference->value(parameter.name) : parameter.fallback;
    const bool differs = !(value == reference);
    ImGui::PushID(parameter.name.c_str());
    ImGui::AlignTextToFramePadding();
    ImGui::PushStyleColor(ImGuiCol_Text,
                          differs ? theme.accent : (field.obstacle.empty() ? theme.ink : theme.ink_quiet));
    ImGui::TextUnformatted(parameter.name.c_str());
    ImGui::PopStyleColor();
    draw_help(parameter, field);
    ImGui::SameLine(6.2f * ImGui::GetFontSize());
    const float undo = differs ? ImGui::GetFrameHeight() + ImGui::GetStyle().ItemSpacing.x : 0;
    ImGui::BeginDisabled(!field.obstacle.empty());
    ImGui::BeginGroup();
    const char* browse = "Browse…";
    const float button = field.browse ? button_width(browse) + ImGui::GetStyle().ItemSpacing.x : 0;
    std::optional<ParameterValue> changed = field_of(parameter, value, field.most, undo + button);
    if (field.browse) {
        ImGui::SameLine();
        if (ImGui::Button(browse)) field.browse();
    }
    ImGui::EndGroup();
    ImGui::EndDisabled();
    if (!field.obstacle.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
        ImGui::SetTooltip("%s", field.obstacle.c_str());
    if (differs) {
        ImGui::SameLine();
        if (ImGui::SmallButton("↺")) changed = reference;
        ImGui::SetItemTooltip("reset to %s", to_text(reference).c_str());
    }
    ImGui::PopID();
    if (!changed) return false;
    try {
        values.set_value(parameter.name, *changed);
    } catch (const policies::ParameterError& error) {
        // No message for a slider, whose ends may be outside the valid range.
        if (std::holds_alternative<std::string>(*changed)) ImGui::SetTooltip("%s", error.what());
        return false;
    }
    return true;
}

}  // namespace kvscope::gui
