#include "app/gui/shell/menu_file_dialogs.h"

#include <utility>

#include "app/gui/figure/export_dialog.h"

namespace kvscope::gui {

namespace {

void ask_for_trace(FileDialog& dialog, std::function<void(const std::filesystem::path&)> answer) {
    dialog.ask({FileDialog::Kind::open, "Open a trace", {".h5", ".hdf5", ".part", ".kvscope"}, {}, std::move(answer)});
}

}  // namespace

void ask_for_trace(FileDialog& dialog, FileOpener& opener) {
    ask_for_trace(dialog, [&opener](const auto& path) { opener.open({path}); });
}

void ask_for_replacement_trace(FileDialog& dialog, FileOpener& opener, Session& session, Autosave& autosave) {
    ask_for_trace(dialog, [&](const auto& path) {
        const Document* focus = session.focus();
        const int before = focus ? focus->id() : -1;
        const size_t n_open = session.documents().size();
        opener.open({path});
        if (before >= 0 && session.documents().size() > n_open && autosave.may_leave()) session.close(before);
    });
}

void ask_for_model(FileDialog& dialog, FileOpener& opener, OpenViews& views) {
    dialog.ask({FileDialog::Kind::open_folder_or_file,
                "Choose a model: a GGUF file or a folder with config.json",
                {".gguf"},
                {},
                [&opener, &views](const auto& path) {
                    opener.open({path});
                    views.dismiss_start();
                }});
}

void ask_where_to_save_workspace(FileDialog& dialog, CurrentWorkspace& workspace, const Session& session,
                                 Notices& notices, Settings& settings) {
    FileDialog::Question question;
    question.kind = FileDialog::Kind::save;
    question.title = "Save traces, layout and selection in one file";
    question.extensions = {".kvscope"};
    question.suggestion = session.focus()->path().stem().string() + ".kvscope";
    question.answer = [&workspace, &notices, &settings](const std::filesystem::path& named) {
        std::filesystem::path path = named;
        if (path.extension() != ".kvscope") path += ".kvscope";  // the extension distinguishes it from a trace
        std::error_code error;
        if (path != named && std::filesystem::exists(path, error))
            return notices.add(path.string() + " already exists. Choose this file to replace it, or enter another name",
                               true);
        try {
            workspace.save(path);
            settings.remember_trace(path);
        } catch (const std::exception& error) {
            notices.add(error.what(), true);
        }
    };
    dialog.ask(std::move(question));
}

void close_trace(const Document& document, Session& session, OpenViews& views, Notices& notices) {
    const std::string name = session.name_of(document);
    session.close(document.id());
    if (session.documents().empty()) views.show_start();  // the views have no data
    notices.add(name + " closed. Reopen it with File > Open recent");
}

void ask_where_to_export(FileDialog& dialog, const OpenView* open, Session& session, Notices& notices) {
    const auto request = open ? open->view->figure(session) : std::nullopt;
    const auto table = open && !request ? open->view->table() : std::nullopt;
    if (request)
        ExportDialog::ask(session, *request, dialog, notices.function());
    else if (table)
        ExportDialog::ask(session, *table, dialog, notices.function());
    else
        notices.add("this view has nothing to export. Click a view with a figure or a table", true);
}

}  // namespace kvscope::gui
