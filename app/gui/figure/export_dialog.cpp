#include "app/gui/figure/export_dialog.h"

#include <imgui.h>

#include <memory>

#include "analysis/tables/table_format.h"
#include "app/figures/export_figure.h"
#include "app/gui/figure/exported_files.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/view/image_clipboard.h"
#include "app/program/version.h"

namespace kvscope::gui {
namespace {

void ask_for(Session& session, const std::string& suggestion, const std::string& title, const figures::Exported& what,
             bool may_have_pages, FileDialog& files, const ExportDialog::Notice& notice) {
    FileDialog::Question question;
    question.kind = FileDialog::Kind::save;
    question.title = title;
    question.suggestion = suggestion;
    question.refusal = [is_picture = static_cast<bool>(what.figure)](const std::filesystem::path& path) {
        return problem_with_ending(path, is_picture);
    };
    question.objection = [may_have_pages](const std::filesystem::path& path) {
        return overwrite_question(figures::files_to_replace(path, may_have_pages));
    };
    question.answer = [&session, what, may_have_pages, notice](const std::filesystem::path& path) {
        const figures::ExportOptions options{300, std::string("kvscope ") + program::version(), session.csv_safe};
        const auto confirmed = figures::files_to_replace(path, may_have_pages);
        session.tasks.once([=] { return describe_written_files(write_exported(what, path, options, confirmed)); },
                           notice);
    };
    files.ask(std::move(question));
}

}  // namespace

void ExportDialog::ask(Session& session, const FigureRequest& request, FileDialog& files, const Notice& notice) {
    const Document* document = session.document(request.document);
    if (!document) return;
    const FigureJob job(session, request);
    ask_for(session, document->path().stem().string() + "-" + request.figure + ".pdf",
            "Export figure " + request.figure + " as pdf, svg, png, csv, md, tex or json", job.exported(),
            analysis::figure_definition(request.figure).may_have_pages, files, notice);
}

void ExportDialog::ask(Session& session, const analysis::Table& table, FileDialog& files, const Notice& notice) {
    ask_for(session, table.name + ".csv", "Export the table as csv, tsv, md, tex or json",
            {{}, [table] { return table; }}, false, files, notice);
}

void ExportDialog::copy_image(Session& session, const FigureRequest& request, const Notice& notice) {
    session.tasks.once(
        [job = FigureJob(session, request)] {
            const TemporaryPng png;
            const figures::ExportOptions options{300, std::string("kvscope ") + program::version()};
            figures::export_figure({[&] { return analysis::split_into_pages(job.figure()).front(); }, {}}, png.path(),
                                   options, true);
            copy_png_to_clipboard(png.path());
            return std::string("Figure copied as an image");
        },
        notice);
}

void ExportDialog::copy_numbers(Session& session, const FigureRequest& request, const std::string& format,
                                const std::string& name, const Notice& notice) {
    const auto table = std::make_shared<analysis::Table>();
    session.tasks.once(
        [table, job = FigureJob(session, request)] {
            *table = job.numbers();
            return std::string();
        },
        [&session, table, format, name, notice](const std::string& said, bool is_error) {
            if (is_error) return notice(said, true);
            copy_numbers(session, *table, format, name, notice);
        });
}

void ExportDialog::copy_numbers(const Session& session, const analysis::Table& table, const std::string& format,
                                const std::string& name, const Notice& notice) {
    try {
        ImGui::SetClipboardText(text(table, format, session.csv_safe).c_str());
        notice("Numbers copied as " + name, false);
    } catch (const std::exception& error) {
        notice(error.what(), true);
    }
}

std::string ExportDialog::numbers(const Session& session, const FigureRequest& request, const std::string& format) {
    return text(FigureJob(session, request).numbers(), format, session.csv_safe);
}

std::string ExportDialog::text(const analysis::Table& table, const std::string& format, bool csv_safe) {
    if (csv_safe && (format == "csv" || format == "tsv"))
        return text(analysis::safe_for_spreadsheets(table), format, false);
    return format == "tsv" ? tab_separated(table)
                           : analysis::format_table(table, analysis::table_format_from_name(format));
}

}  // namespace kvscope::gui
