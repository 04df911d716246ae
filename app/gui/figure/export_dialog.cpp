#include "app/gui/figure/export_dialog.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/figures/export_figure.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/view/image_clipboard.h"
#include "app/program/version.h"
#include "common/whole_file.h"

namespace kvscope::gui {

namespace {

void ask_for(Session& session, const std::string& suggestion, const std::string& title, const figures::Exported& what,
             bool may_have_pages, FileDialog& files, const Notice& notice) {
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
            "Export figure " + request.figure + " as pdf, svg, png, csv, md, tex, html or json", job.exported(),
            analysis::figure_definition(request.figure).may_have_pages, files, notice);
}

void ExportDialog::ask(Session& session, const analysis::Table& table, FileDialog& files, const Notice& notice) {
    ask_for(session, table.name + ".csv", "Export the table as csv, tsv, md, tex, html or json",
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

namespace fs = std::filesystem;

std::string tab_separated(const analysis::Table& table) {
    std::string text;
    const auto add = [&](std::string field, bool last) {
        for (char& c : field)
            if (c == '\t' || c == '\n' || c == '\r') c = ' ';
        text += field + (last ? "\n" : "\t");
    };
    for (size_t i = 0; i < table.columns.size(); ++i) add(table.columns[i].name, i + 1 == table.columns.size());
    for (const auto& row : table.rows) {
        for (size_t i = 0; i < row.cells.size(); ++i) {
            const auto& cell = row.cells[i];
            std::string field;
            if (const auto* word = std::get_if<SharedText>(&cell)) field = word->string();
            if (const auto* whole = std::get_if<int64_t>(&cell)) field = std::to_string(*whole);
            if (const auto* real = std::get_if<double>(&cell)) field = fmt::format("{}", *real);
            add(std::move(field), i + 1 == row.cells.size());
        }
    }
    return text;
}

std::string overwrite_question(const std::vector<fs::path>& there) {
    if (there.empty()) return "";
    const std::string first = there.front().filename().string();
    if (there.size() == 1) return first + " already exists";
    return fmt::format("{} and {} other {} of this figure already exist", first, there.size() - 1,
                       there.size() == 2 ? "file" : "files");
}

std::string problem_with_ending(const fs::path& path, bool is_picture) {
    if (path.extension() == ".tsv") return "";
    try {
        const bool makes_picture = figures::figure_format_for(path.filename().string()).is_picture;
        if (is_picture || !makes_picture) return "";
        return fmt::format(
            "{} has an image extension, but the output is a table: use .csv, .tsv, .md, .tex, .html or .json",
            path.filename().string());
    } catch (const figures::FormatError& error) {
        return error.what();
    }
}

std::vector<fs::path> write_exported(const figures::Exported& what, const fs::path& path,
                                     const figures::ExportOptions& options, const std::vector<fs::path>& confirmed) {
    try {
        if (path.extension() != ".tsv") return figures::export_figure(what, path, options, confirmed);
        const bool replace = std::ranges::find(confirmed, path) != confirmed.end();
        analysis::Table table = what.numbers();
        if (options.csv_safe) table = analysis::safe_for_spreadsheets(std::move(table));
        write_whole_file(path, tab_separated(table), replace);
        return {path};
    } catch (const FileExists& exists) {
        throw std::runtime_error(
            fmt::format("{} already exists and was not replaced: {}; choose another name", exists.path,
                        exists.path == path ? "the file appeared after the dialog was confirmed"
                                            : "the dialog did not ask about the file of this page"));
    }
}

std::string describe_written_files(const std::vector<fs::path>& files) {
    if (files.size() == 1) return files.front().string() + " written";
    return fmt::format("{} pages written: {} to {}", files.size(), files.front().string(),
                       files.back().filename().string());
}

}  // namespace kvscope::gui
