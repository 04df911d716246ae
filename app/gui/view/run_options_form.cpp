#include "app/gui/view/run_options_form.h"

#include <fmt/format.h>
#include <imgui.h>

#include <functional>

namespace kvscope::gui {
namespace {

/// A row of the form.
struct Row {
    const char* name;
    const char* help;
    std::string usual;  ///< the default, as text
    bool differs;
};

void draw_row(const Row& row, const Theme& theme, const std::function<void(const char* label)>& field,
              const std::function<void()>& back) {
    ImGui::AlignTextToFramePadding();
    ImGui::PushStyleColor(ImGuiCol_Text, row.differs ? theme.accent : theme.ink);
    ImGui::TextUnformatted(row.name);
    ImGui::PopStyleColor();
    if (ImGui::BeginItemTooltip()) {
        ImGui::PushTextWrapPos(26 * ImGui::GetFontSize());
        ImGui::TextUnformatted(row.help);
        ImGui::TextDisabled("default %s", row.usual.c_str());
        ImGui::PopTextWrapPos();
        ImGui::EndTooltip();
    }
    ImGui::SameLine(9 * ImGui::GetFontSize());
    const float room = row.differs ? ImGui::GetFrameHeight() + ImGui::GetStyle().ItemSpacing.x : 0;
    ImGui::SetNextItemWidth(-std::max(room, 1.0f));
    field(fmt::format("##{}", row.name).c_str());
    if (row.differs) {
        ImGui::SameLine();
        if (ImGui::SmallButton(fmt::format("↺##{}", row.name).c_str())) back();
        ImGui::SetItemTooltip("back to %s", row.usual.c_str());
    }
}

template <class T>
void draw_option(const char* name, const char* help, T& value, const T& usual, const std::string& usual_text,
                 const Theme& theme, const std::function<void(const char* label)>& field) {
    draw_row({name, help, usual_text, !(value == usual)}, theme, field, [&] { value = usual; });
}

}  // namespace

void draw_problem(const RunForm& form, RunField field, const Theme& theme) {
    const std::string problem = form.problem_with(field);
    if (problem.empty()) return;
    ImGui::PushStyleColor(ImGuiCol_Text, theme.error);
    ImGui::TextWrapped("%s", problem.c_str());
    ImGui::PopStyleColor();
}

void edit_run_options(RunForm& form, const Theme& theme) {
    RunOptions& options = form.request.options;
    const RunOptions usual;
    draw_option("temperature", "0 is greedy: always the likeliest token.", options.temperature, usual.temperature, "0",
                theme, [&](const char* label) { ImGui::InputDouble(label, &options.temperature, 0, 0, "%.6g"); });
    draw_problem(form, RunField::temperature, theme);
    draw_option("top-p", "Share of the probability that is drawn from: the fewest likeliest tokens that reach it.",
                options.top_p, usual.top_p, "1", theme,
                [&](const char* label) { ImGui::InputDouble(label, &options.top_p, 0, 0, "%.6g"); });
    draw_problem(form, RunField::top_p, theme);
    draw_option("sampling seed", "Of the answers; without effect while they are greedy.", options.sampling_seed,
                usual.sampling_seed, "0", theme,
                [&](const char* label) { ImGui::InputScalar(label, ImGuiDataType_U64, &options.sampling_seed); });
    draw_option("policies' seed", "Of policies that draw: random.", options.seed, usual.seed, "0", theme,
                [&](const char* label) { ImGui::InputScalar(label, ImGuiDataType_U64, &options.seed); });
    draw_option("dtype",
                "Type of the weights and of the cache; auto: bf16 where the processor multiplies it natively. Another "
                "type than before loads the model again.",
                options.dtype, usual.dtype, "auto", theme, [&](const char* label) {
                    if (!ImGui::BeginCombo(label, options.dtype.c_str())) return;
                    for (const char* name : {"auto", "f32", "bf16"}) {
                        if (ImGui::Selectable(name, options.dtype == name)) options.dtype = name;
                    }
                    ImGui::EndCombo();
                });
    draw_problem(form, RunField::dtype, theme);
    draw_option("isolated",
                "One run at a time, as a server would: honest memory and speed, and the prompt is read anew for each. "
                "What-if needs a prefill in memory, and further questions need caches: only runs made together leave "
                "them. After isolated runs both are made again when they are asked for.",
                options.isolated, usual.isolated, "off: all runs share one prefill", theme,
                [&](const char* label) { ImGui::Checkbox(label, &options.isolated); });
    if (options.isolated) ImGui::TextDisabled("nothing stays in memory for what-ifs");
    draw_option("ignore end of text", "Generates all of the tokens, also behind an end-of-text token.",
                options.ignore_eos, usual.ignore_eos, "off", theme,
                [&](const char* label) { ImGui::Checkbox(label, &options.ignore_eos); });
    draw_option("window",
                "Last queries whose attention is recorded of the full cache (full/*): divergence, similarity and the "
                "attention that runs keep are measured on them. Larger where a policy needs more.",
                options.window, usual.window, "32", theme,
                [&](const char* label) { ImGui::InputInt(label, &options.window, 0); });
    draw_problem(form, RunField::window, theme);
    draw_option("gradient alignment",
                "How each head's c11, c12 and c22 lie to the loss's gradient, for the view Spectrum (KVSlimmer, Figure "
                "3), of the prompt's first 2,048 tokens. Takes a second pass, with gradients.",
                options.alignment, usual.alignment, "off", theme,
                [&](const char* label) { ImGui::Checkbox(label, &options.alignment); });
}

}  // namespace kvscope::gui
