#include "app/gui/figure_menu.h"

#include <imgui.h>

#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/gui/export_dialog.h"

namespace kvscope::gui {
namespace {

struct Form {
    const char* name;
    const char* format;
};
constexpr std::array<Form, 5> forms = {
    {{"TSV", "tsv"}, {"CSV", "csv"}, {"Markdown", "md"}, {"LaTeX", "tex"}, {"JSON", "json"}}};

bool right_clicked() {
    return ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows) &&
           ImGui::IsMouseReleased(ImGuiMouseButton_Right) &&
           ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Right] < 9;
}

void draw_menu(Context& context, const View& view, const char* kind, const std::optional<FigureRequest>& request,
               const std::function<std::string(const char* format)>& text) {
    if (right_clicked()) ImGui::OpenPopup("figure menu");
    if (!ImGui::BeginPopup("figure menu")) return;
    if (ImGui::BeginMenu("Copy numbers as", static_cast<bool>(text))) {
        for (const Form& form : forms) {
            if (!ImGui::MenuItem(form.name)) continue;
            try {
                ImGui::SetClipboardText(text(form.format).c_str());
                context.desk.notice(std::string("numbers copied as ") + form.name, false);
            } catch (const std::exception& error) {
                context.desk.notice(error.what(), true);
            }
        }
        ImGui::EndMenu();
    }
    if (ImGui::MenuItem("Export…", "Ctrl+Shift+E", false, request.has_value()))
        ExportDialog().ask(context.session, *request, context.desk.files, context.desk.notice);
    ImGui::Separator();
    if (ImGui::MenuItem("Open as new view")) {
        nlohmann::json state = nlohmann::json::object();
        view.save(state);
        context.desk.open_view(kind, state);
    }
    ImGui::EndPopup();
}

}  // namespace

void draw_figure_menu(Context& context, const View& view, const char* kind,
                      const std::optional<FigureRequest>& request) {
    std::function<std::string(const char*)> text;
    if (request) text = [&](const char* format) { return ExportDialog::numbers(context.session, *request, format); };
    draw_menu(context, view, kind, request, text);
}

void draw_table_menu(Context& context, const View& view, const char* kind, const analysis::Table& table,
                     const std::optional<FigureRequest>& request) {
    draw_menu(context, view, kind, request, [&](const char* format) { return ExportDialog::text(table, format); });
}

}  // namespace kvscope::gui
