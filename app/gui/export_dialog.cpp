#include "app/gui/export_dialog.h"

#include <fmt/format.h>

#include "analysis/table_format.h"
#include "app/figures/export_figure.h"
#include "app/gui/image_clipboard.h"
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

}  // namespace

void ExportDialog::ask(const Session& session, const FigureRequest& request, FileDialog& files,
                       std::function<void(const std::string&, bool)> notice) {
    const Document* document = session.document(request.document);
    if (!document) return;
    const auto reader = document->reader();
    FileDialog::Question question;
    question.kind = FileDialog::Kind::save;
    question.title = "Export " + request.figure + " as pdf, svg, png, csv, md, tex or json";
    question.suggestion = document->path().stem().string() + "-" + request.figure + ".pdf";
    question.answer = [reader, request, notice](const std::filesystem::path& path) {
        try {
            const figures::ExportOptions options{300, std::string("kvscope ") + program::version()};
            figures::export_figure(*reader, analysis::figure_definition(request.figure), request.options, path, options,
                                   true);
            notice(path.string() + " written", false);
        } catch (const std::exception& error) {
            notice(error.what(), true);
        }
    };
    files.ask(std::move(question));
}

void ExportDialog::copy_image(const Session& session, const FigureRequest& request) {
    const Document* document = session.document(request.document);
    if (!document) throw analysis::NothingToShow("the trace is closed");
    const TemporaryPng png;
    const figures::ExportOptions options{300, std::string("kvscope ") + program::version()};
    figures::export_figure(*document->reader(), analysis::figure_definition(request.figure), request.options,
                           png.path(), options, true);
    copy_png(png.path());
}

std::string ExportDialog::numbers(const Session& session, const FigureRequest& request, const std::string& format) {
    const Document* document = session.document(request.document);
    if (!document) throw analysis::NothingToShow("the trace is closed");
    return text(analysis::figure_definition(request.figure).numbers(*document->reader(), request.options), format);
}

std::string ExportDialog::text(const analysis::Table& table, const std::string& format) {
    return format == "tsv" ? tsv(table) : analysis::format_table(table, analysis::table_format_from_name(format));
}

}  // namespace kvscope::gui
