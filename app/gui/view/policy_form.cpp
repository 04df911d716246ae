#include "app/gui/view/policy_form.h"

#include <fmt/format.h>
#include <imgui.h>

#include "app/gui/view/file_dialog.h"
#include "app/gui/view/parameter_form.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/widgets.h"
#include "policies/api/budget.h"
#include "policies/registry/feasibility.h"

namespace kvscope::gui {
namespace {

const ImVec4& color_of(const Theme& theme, const RefusedRuns::Row& row) {
    return row.can_run() ? theme.warning : theme.error;
}

/// Draws a disc with the row's error as its tooltip. The disc is an item, so that tests can find it.
void draw_mark(const Theme& theme, const RefusedRuns::Row& row, float x) {
    ImGui::SameLine(x);
    const float size = ImGui::GetFrameHeight();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton(row.can_run() ? "some budgets fail" : "cannot run", {size, size});
    wrapped_tooltip(row.reasons());
    const ImVec2 middle{at.x + size / 2, at.y + size / 2};
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddCircleFilled(middle, 0.34f * size, packed(color_of(theme, row)));
    const ImVec2 extent = ImGui::CalcTextSize("!");
    list->AddText({middle.x - extent.x / 2, middle.y - extent.y / 2}, packed(theme.panel), "!");
}

enum class Wanted { nothing, another, none };

std::vector<std::string> extensions_of(const std::string& parameter) {
    if (parameter == "maps") return {".safetensors"};
    if (parameter == "importance") return {".json"};
    return {};
}

void ask_for_file(const Context& context, const Lifetime& asker, RunForm& form, const PolicyRow& row) {
    const policies::Parameter& file = *policies::find_file_parameter(row.spec);
    context.host.files.ask(
        {.kind = file.name == "model" ? FileDialog::Kind::open_folder_or_file : FileDialog::Kind::open,
         .title = fmt::format("{}: {}", row.spec.definition->title, file.name),
         .extensions = extensions_of(file.name),
         .answer =
             [&form, id = row.id, name = file.name](const std::filesystem::path& path) {
                 for (PolicyRow& each : form.rows)
                     if (each.id == id) each.spec.values.set(name, path.string());
             },
         .asker = asker.watch()});
}

Wanted draw_row(const Theme& theme, PolicyRow& row, const RefusedRuns::Row* checked,
                const std::function<void()>& browse) {
    const auto& definition = *row.spec.definition;
    ImGui::Checkbox("##ticked", &row.ticked);
    ImGui::SameLine();
    const std::string changes = row.spec.values.text_of_changes();
    const std::string title = changes.empty() ? definition.title : fmt::format("{}  {}", definition.title, changes);
    const bool is_marked = checked && checked->n_refused > 0;
    const float buttons = ImGui::GetContentRegionMax().x - 2.5f * ImGui::GetFrameHeight();
    const float mark = buttons - 1.2f * ImGui::GetFrameHeight();
    const float room = (is_marked ? mark : buttons) - ImGui::GetCursorPosX() - ImGui::GetTreeNodeToLabelSpacing();
    const bool open = ImGui::TreeNodeEx(fmt::format("{}###{}", shorten_run_label(title, room), definition.name).c_str(),
                                        ImGuiTreeNodeFlags_SpanAvailWidth | ImGuiTreeNodeFlags_AllowOverlap);
    ImGui::SetItemTooltip("%s: %s\n%s%s%s", definition.name.c_str(), definition.summary.c_str(),
                          definition.remark.c_str(), definition.remark.empty() ? "" : "\n", definition.paper.c_str());
    if (is_marked) draw_mark(theme, *checked, mark);
    Wanted wanted = Wanted::nothing;
    ImGui::SameLine(buttons);
    if (ImGui::SmallButton("+")) wanted = Wanted::another;
    ImGui::SetItemTooltip("adds the same policy with other parameters");
    ImGui::SameLine();
    if (ImGui::SmallButton("−")) wanted = Wanted::none;
    ImGui::SetItemTooltip("removes this row if the policy has another row");
    if (!open) return wanted;
    const policies::Parameter* file = policies::find_file_parameter(row.spec);
    for (const auto& parameter : definition.parameters) {
        ParameterField field;
        if (file && file->name == parameter.name) field.browse = browse;
        edit_parameter(parameter, row.spec.values, theme, field);
    }
    if (definition.parameters.empty()) ImGui::TextDisabled("no parameters");
    ImGui::TreePop();
    return wanted;
}

}  // namespace

void tick_policies_that_can_run(RunForm& form, const RefusedRuns& check) {
    form.tick([&](const PolicyRow& row) {
        const RefusedRuns::Row* checked = check.find(row.id);
        return !checked || checked->can_run();
    });
}

void untick_all_policies(RunForm& form) {
    form.tick([](const PolicyRow&) { return false; });
}

void draw_policy_choices(const Context& context, const Lifetime& asker, RunForm& form, const RefusedRuns& check) {
    const Theme& theme = context.theme;
    ImGui::SeparatorText("Policies");
    ImGui::TextDisabled("Select:");
    ImGui::SameLine();
    if (ImGui::SmallButton("All##policies")) tick_policies_that_can_run(form, check);
    ImGui::SetItemTooltip("selects every policy that can run with its settings");
    ImGui::SameLine();
    if (ImGui::SmallButton("None##policies")) untick_all_policies(form);
    std::optional<size_t> duplicated;
    std::optional<size_t> removed;
    for (size_t i = 0; i < form.rows.size(); ++i) {
        PolicyRow& row = form.rows[i];
        ImGui::PushID(row.id);
        const Wanted wanted =
            draw_row(theme, row, check.find(row.id), [&] { ask_for_file(context, asker, form, row); });
        ImGui::PopID();
        if (wanted == Wanted::another) duplicated = i;
        if (wanted == Wanted::none) removed = i;
    }
    if (duplicated) form.duplicate(*duplicated);
    if (removed) form.remove(*removed);
}

void draw_budget_field(const Theme& theme, RunForm& form, const std::optional<TokenCount>& tokens, bool same_height) {
    ImGui::SeparatorText("Budgets");
    ImGui::SetNextItemWidth(-FLT_MIN);
    text_field("##budgets", "64,256   0.1   64-512*2", &form.request.budgets);
    if (!ImGui::IsItemActive())  // the tooltip would cover messages about the typed text
        ImGui::SetItemTooltip(
            "entries kept per KV head and layer, as numbers or shares;\nfor policies that keep every token, as shares "
            "of the bytes");
    if (const std::string problem = form.budget_problem(); !problem.empty()) return wrapped_text(problem, theme.error);
    const std::vector<std::string> lines = form.budget_lines(tokens);
    if (same_height) {
        const auto n = static_cast<float>(policies::parse_budgets(form.request.budgets).size());
        ImGui::SetNextWindowScroll({0, -1});
        ImGui::BeginChild("what budgets come to", {0, n * ImGui::GetTextLineHeightWithSpacing()});
    }
    for (const auto& line : lines) wrapped_text(line, theme.ink_quiet);
    if (!same_height) return;
    draw_scroll_fade(theme);
    ImGui::EndChild();
}

void draw_budget_notes(const Theme& theme, const RunForm& form, const std::optional<TokenCount>& tokens,
                       const RefusedRuns& check) {
    for (const RefusedRuns::Row& row : check.rows)
        if (row.ticked && row.n_refused > 0)
            wrapped_text(fmt::format("{}: {}", row.policy, row.brief()), color_of(theme, row));
    if (!form.budget_problem().empty()) return;
    for (const BudgetNote& note : budget_notes(form, tokens, check))
        wrapped_text(note.text, note.kind == BudgetNote::Kind::error     ? theme.error
                                : note.kind == BudgetNote::Kind::warning ? theme.warning
                                                                         : theme.ink_quiet);
}

}  // namespace kvscope::gui
