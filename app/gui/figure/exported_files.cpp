#include "app/gui/figure/exported_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/figures/export_figure.h"
#include "common/whole_file.h"

namespace kvscope::gui {

namespace fs = std::filesystem;

std::string tab_separated(const analysis::Table& table) {
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
        const bool makes_picture = figures::figure_format_for(path.filename().string()).is_picture();
        if (is_picture || !makes_picture) return "";
        return fmt::format("{} has an image extension, but the output is a table: use .csv, .tsv, .md, .tex or .json",
                           path.filename().string());
    } catch (const figures::FormatError& error) {
        return error.what();
    }
}

std::vector<fs::path> write_exported(const figures::Exported& what, const fs::path& path,
                                     const figures::ExportOptions& options, const std::vector<fs::path>& confirmed) {
    try {
        if (path.extension() != ".tsv") return figures::export_figure(what, path, options, confirmed);
        const bool replace = std::find(confirmed.begin(), confirmed.end(), path) != confirmed.end();
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
