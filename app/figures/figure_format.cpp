#include "app/figures/figure_format.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "analysis/tables/table_format.h"
#include "common/lower_case.h"

namespace kvscope::figures {
namespace {

using analysis::TableFormat;

using Render = std::string (*)(const analysis::Figure& figure, const ExportOptions& options);

FigureFormat picture_format(std::string_view extension, std::string_view description, bool has_file_per_page,
                            Render render) {
    return {extension,
            description,
            true,
            true,
            has_file_per_page,
            [=](const Exported& what, const ExportOptions& options) -> std::vector<std::string> {
                if (!what.figure)
                    throw FormatError(fmt::format(
                        "a table is written as csv, md, tex, html, json or jsonl; .{} is an image format", extension));
                const analysis::Figure figure = what.figure();
                if (!has_file_per_page) return {render(figure, options)};
                std::vector<std::string> files;
                for (const analysis::Figure& page : analysis::split_into_pages(figure))
                    files.push_back(render(page, options));
                return files;
            }};
}

FigureFormat table_format(TableFormat format, std::string_view extension, std::string_view description) {
    return {extension, description, false, false, false, [=](const Exported& what, const ExportOptions& options) {
                analysis::Table table = what.numbers();
                if (options.csv_safe && format == TableFormat::csv) table = safe_for_spreadsheets(std::move(table));
                return std::vector{analysis::format_table(table, format)};
            }};
}

}  // namespace

Exported figure_to_export(const analysis::FigureDefinition& definition, const trace::Reader& reader,
                          const analysis::FigureOptions& options) {
    Exported exported{nullptr, [&definition, &reader, options] { return definition.numbers(reader, options); },
                      [&definition, &reader, options] { definition.check(reader, options); }};
    if (definition.has_drawing())
        exported.figure = [&definition, &reader, options] { return definition.make(reader, options); };
    return exported;
}

const std::vector<FigureFormat>& figure_formats() {
    static const std::vector<FigureFormat> formats = {
        picture_format("pdf", "PDF: vector image with embedded fonts, all pages in one file", false, render_pdf),
        picture_format("svg", "SVG: vector image with text as outlines, one file per page", true, render_svg),
        picture_format("png", "PNG: bitmap, 300 dots per inch by default, one file per page", true, render_png),
        {"html", "HTML: a page with the image and its numbers, which needs no other file", false, true, false,
         [](const Exported& what, const ExportOptions& options) { return std::vector{render_html(what, options)}; }},
        table_format(TableFormat::csv, "csv", "CSV: comma-separated numbers"),
        table_format(TableFormat::markdown, "md", "Markdown table of the numbers"),
        table_format(TableFormat::latex, "tex", "LaTeX table of the numbers (booktabs)"),
        table_format(TableFormat::json, "json", "JSON array of the numbers"),
        table_format(TableFormat::jsonl, "jsonl", "JSON Lines: one object per row of numbers")};
    return formats;
}

const FigureFormat& figure_format_for(std::string_view file_name) {
    std::string extension = lower_case(std::filesystem::path(file_name).extension().string());
    if (!extension.empty()) extension.erase(0, 1);
    std::vector<std::string_view> known;
    for (const auto& format : figure_formats()) {
        if (format.extension == extension) return format;
        known.push_back(format.extension);
    }
    throw FormatError(fmt::format("{}: the file name must end in one of .{}; found {}", file_name,
                                  fmt::join(known, ", ."), extension.empty() ? "no extension" : "." + extension));
}

}  // namespace kvscope::figures
