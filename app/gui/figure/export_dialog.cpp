#include "app/gui/figure/export_dialog.h"

#include <fmt/format.h>

#include "analysis/table_format.h"
#include "app/figures/export_figure.h"
#include "app/figures/output_file.h"
#include "app/gui/figure/figure_source.h"
#include "app/gui/view/image_clipboard.h"
#include "app/program/version.h"

namespace kvscope::gui {
namespace {

/// Tabs between the fields, as spreadsheets take it from the clipboard; a field's own tabs and breaks become spaces.
std::string tsv(const analysis::Table& table) {
    std::string text;
    const auto add = [&](std::string field, bool last) {
        for (char& c : field) {
            if (c == '\t' || c == '\n' || c == '\r') c = ' ';
        }
        text += field + (last ? "\n" : "\t");
    };
    for (size_t i = 0; i < table.columns.size(); ++i) add(table.columns[i].name, i + 1 == table.columns.size());
    for (const auto& row : table.rows) {
        for (size_t i = 0; i < row.cells.size(); ++i) {
            const auto& cell = row.cells[i];
            std::string field;
            if (const auto* word = std::get_if<std::string>(&cell)) field = *word;
            if (const auto* whole = std::get_if<int64_t>(&cell)) field = std::to_string(*whole);
            if (const auto* real = std::get_if<double>(&cell)) field = fmt::format("{}", *real);
            add(std::move(field), i + 1 == row.cells.size());
        }
    }
    return text;
}

/// @returns what to say
std::string write(const figures::Exported& what, const std::filesystem::path& path) {
    const figures::ExportOptions options{300, std::string("kvscope ") + program::version()};
    std::vector<std::filesystem::path> written{path};
    if (path.extension() == ".tsv")
        figures::write_whole_file(path, tsv(what.numbers()), true);
    else
        written = figures::export_figure(what, path, options, true);
    if (written.size() == 1) return written.front().string() + " written";
    return fmt::format("{} pages written: {} to {}", written.size(), written.front().string(),
                       written.back().filename().string());
}

void ask_for(Tasks& tasks, const std::string& suggestion, const std::string& title, const figures::Exported& what,
             FileDialog& files, const ExportDialog::Notice& notice) {
    FileDialog::Question question;
    question.kind = FileDialog::Kind::save;
    question.title = title;
    question.suggestion = suggestion;
    question.answer = [&tasks, what, notice](const std::filesystem::path& path) {
        tasks.once([what, path] { return write(what, path); }, notice);
    };
    files.ask(std::move(question));
}

}  // namespace

void ExportDialog::ask(Session& session, const FigureRequest& request, FileDialog& files, const Notice& notice) {
    const Document* document = session.document(request.document);
    if (!document) return;
    const FigureJob job(session, request);
    ask_for(session.tasks, document->path().stem().string() + "-" + request.figure + ".pdf",
            "Export " + request.figure + " as pdf, svg, png, csv, md, tex or json", job.exported(), files, notice);
}

void ExportDialog::ask(Session& session, const analysis::Table& table, FileDialog& files, const Notice& notice) {
    ask_for(session.tasks, table.name + ".csv", "Export the table as csv, tsv, md, tex or json",
            {{}, [table] { return table; }}, files, notice);
}

void ExportDialog::copy_image(Session& session, const FigureRequest& request, const Notice& notice) {
    session.tasks.once(
        [job = FigureJob(session, request)] {
            const TemporaryPng png;
            const figures::ExportOptions options{300, std::string("kvscope ") + program::version()};
            figures::export_figure({[&] { return analysis::pages_of(job.figure()).front(); }, {}}, png.path(), options,
                                   true);
            copy_png(png.path());
            return std::string("figure copied as an image");
        },
        notice);
}

std::string ExportDialog::numbers(const Session& session, const FigureRequest& request, const std::string& format) {
    return text(FigureJob(session, request).numbers(), format);
}

std::string ExportDialog::text(const analysis::Table& table, const std::string& format) {
    return format == "tsv" ? tsv(table) : analysis::format_table(table, analysis::table_format_from_name(format));
}

}  // namespace kvscope::gui
