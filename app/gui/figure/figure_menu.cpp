#include "app/gui/figure/figure_menu.h"

#include <imgui.h>

#include <array>
#include <functional>

#include "app/gui/figure/export_dialog.h"
#include "app/gui/view/widgets.h"
#include "common/json.h"

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
           ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Right] < 9 &&
           !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup);  // a badge in the figure may have opened a menu
}

void try_it(const Context& context, const std::function<void()>& act) {
    try {
        act();
    } catch (const std::exception& error) {
        context.host.notice(error.what(), true);
    }
}

void draw_items(Context& context, const View& view, const char* kind,
                const std::function<void(const Form&)>& copy_numbers, const std::function<void()>& copy_image,
                const std::function<void()>& export_it) {
    if (ImGui::BeginMenu("Copy numbers as", static_cast<bool>(copy_numbers))) {
        for (const Form& form : forms)
            if (ImGui::MenuItem(form.name)) try_it(context, [&] { copy_numbers(form); });
        ImGui::Separator();
        ImGui::PushItemFlag(ImGuiItemFlags_AutoClosePopups, false);
        ImGui::MenuItem("CSV and TSV safe for spreadsheets", nullptr, &context.session.csv_safe);
        item_tooltip(csv_safe_words);
        ImGui::PopItemFlag();
        ImGui::EndMenu();
    }
    if (ImGui::MenuItem("Copy figure as image", nullptr, false, static_cast<bool>(copy_image)))
        try_it(context, copy_image);
    if (ImGui::MenuItem("Copy view as screenshot")) context.host.copy_as_seen(view);
    if (ImGui::MenuItem("Export…", nullptr, false, static_cast<bool>(export_it))) export_it();
    ImGui::Separator();
    if (ImGui::MenuItem("Open as new view")) {
        nlohmann::json state = nlohmann::json::object();
        view.save(state);
        context.host.open_view(kind, state);
    }
}

bool begin_menu() {
    if (right_clicked()) ImGui::OpenPopup("figure menu");
    return ImGui::BeginPopup("figure menu");
}

}  // namespace

void draw_figure_menu(Context& context, const View& view, const char* kind,
                      const std::optional<FigureRequest>& request) {
    if (!begin_menu()) return;
    draw_figure_menu_items(context, view, kind, request);
    ImGui::EndPopup();
}

void draw_figure_menu_items(Context& context, const View& view, const char* kind,
                            const std::optional<FigureRequest>& request) {
    if (!request) {
        draw_items(context, view, kind, {}, {}, {});
        return;
    }
    draw_items(
        context, view, kind,
        [&](const Form& form) {
            ExportDialog::copy_numbers(context.session, *request, form.format, form.name, context.host.notice);
        },
        [&] { ExportDialog::copy_image(context.session, *request, context.host.notice); },
        [&] { ExportDialog::ask(context.session, *request, context.host.files, context.host.notice); });
}

void draw_table_menu(Context& context, const View& view, const char* kind) {
    if (!begin_menu()) return;
    draw_items(
        context, view, kind,
        [&](const Form& form) {
            if (const auto table = view.table())
                ExportDialog::copy_numbers(context.session, *table, form.format, form.name, context.host.notice);
        },
        {},
        [&] {
            if (const auto table = view.table())
                ExportDialog::ask(context.session, *table, context.host.files, context.host.notice);
        });
    ImGui::EndPopup();
}

}  // namespace kvscope::gui
