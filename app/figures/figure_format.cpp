#include "app/figures/figure_format.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/figures/pdf.h"
#include "app/figures/png.h"
#include "app/figures/svg.h"
#include "common/lower_case.h"

namespace kvscope::figures {
namespace {

using analysis::TableFormat;

analysis::Figure picture(const Exported& what, std::string_view extension) {
    if (what.figure) return what.figure();
    throw FormatError(
        fmt::format("a table is written as csv, md, tex, json or jsonl; .{} is an image format", extension));
}

template <class Render>
std::vector<std::string> each_page(const analysis::Figure& figure, const Render& render) {
    std::vector<std::string> files;
    for (const analysis::Figure& page : analysis::split_into_pages(figure)) files.push_back(render(page));
    return files;
}

class PdfFormat : public FigureFormat {
 public:
    std::string_view extension() const override { return "pdf"; }
    std::string_view description() const override {
        return "PDF: vector image with embedded fonts, all pages in one file";
    }
    bool is_picture() const override { return true; }
    std::vector<std::string> render(const Exported& what, const ExportOptions& options) const override {
        return {render_pdf(picture(what, extension()), options)};
    }
};

class SvgFormat : public FigureFormat {
 public:
    std::string_view extension() const override { return "svg"; }
    std::string_view description() const override {
        return "SVG: vector image with text as outlines, one file per page";
    }
    bool is_picture() const override { return true; }
    bool has_file_per_page() const override { return true; }
    std::vector<std::string> render(const Exported& what, const ExportOptions& options) const override {
        return each_page(picture(what, extension()),
                         [&](const analysis::Figure& page) { return render_svg(page, options); });
    }
};

class PngFormat : public FigureFormat {
 public:
    std::string_view extension() const override { return "png"; }
    std::string_view description() const override {
        return "PNG: bitmap, 300 dots per inch by default, one file per page";
    }
    bool is_picture() const override { return true; }
    bool has_file_per_page() const override { return true; }
    std::vector<std::string> render(const Exported& what, const ExportOptions& options) const override {
        return each_page(picture(what, extension()),
                         [&](const analysis::Figure& page) { return render_png(page, options); });
    }
};

class NumbersFormat : public FigureFormat {
 public:
    NumbersFormat(TableFormat format, std::string_view extension, std::string_view description)
        : format_(format), extension_(extension), description_(description) {}
    std::string_view extension() const override { return extension_; }
    std::string_view description() const override { return description_; }
    bool is_picture() const override { return false; }
    std::vector<std::string> render(const Exported& what, const ExportOptions& options) const override {
        analysis::Table table = what.numbers();
        if (options.csv_safe && format_ == TableFormat::csv) table = safe_for_spreadsheets(std::move(table));
        return {format_table(table, format_)};
    }

 private:
    TableFormat format_;
    std::string_view extension_;
    std::string_view description_;
};

std::vector<std::unique_ptr<const FigureFormat>> make_formats() {
    std::vector<std::unique_ptr<const FigureFormat>> formats;
    formats.push_back(std::make_unique<PdfFormat>());
    formats.push_back(std::make_unique<SvgFormat>());
    formats.push_back(std::make_unique<PngFormat>());
    const auto numbers = [&](TableFormat format, std::string_view extension, std::string_view description) {
        formats.push_back(std::make_unique<NumbersFormat>(format, extension, description));
    };
    numbers(TableFormat::csv, "csv", "CSV: comma-separated numbers");
    numbers(TableFormat::markdown, "md", "Markdown table of the numbers");
    numbers(TableFormat::latex, "tex", "LaTeX table of the numbers (booktabs)");
    numbers(TableFormat::json, "json", "JSON array of the numbers");
    numbers(TableFormat::jsonl, "jsonl", "JSON Lines: one object per row of numbers");
    return formats;
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

const std::vector<std::unique_ptr<const FigureFormat>>& figure_formats() {
    static const auto formats = make_formats();
    return formats;
}

const FigureFormat& figure_format_for(std::string_view file_name) {
    std::string extension = lower_case(std::filesystem::path(file_name).extension().string());
    if (!extension.empty()) extension.erase(0, 1);
    std::vector<std::string_view> known;
    for (const auto& format : figure_formats()) {
        if (format->extension() == extension) return *format;
        known.push_back(format->extension());
    }
    throw FormatError(fmt::format("{}: the file name must end in one of .{}; found {}", file_name,
                                  fmt::join(known, ", ."), extension.empty() ? "no extension" : "." + extension));
}

}  // namespace kvscope::figures
