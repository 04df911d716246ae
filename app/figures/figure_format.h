#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/drawing/figure_definition.h"

namespace kvscope::figures {

struct ExportOptions {
    double dpi = 300;                 ///< resolution of PNG files, and of fine maps in PDF and SVG
    std::string creator = "kvscope";  ///< program and version in the file's metadata
    bool csv_safe = false;            ///< whether CSV texts are made safe for spreadsheets
};

/// Reports an unknown file extension or an invalid resolution.
struct FormatError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// Functions that make a figure and its numbers. If `figure` is empty, only a table can be made.
struct Exported {
    std::function<analysis::Figure()> figure;
    std::function<analysis::Table()> numbers;
    /// Throws analysis::NothingToShow if the figure has no data. May be empty.
    std::function<void()> check = {};
};

/// Definition and reader must outlive the result.
[[nodiscard]] Exported figure_to_export(const analysis::FigureDefinition& definition, const trace::Reader& reader,
                                        const analysis::FigureOptions& options);

/// A file format for figures. The same figure and options give the same bytes.
struct FigureFormat {
    std::string_view extension;  ///< such as "pdf"
    std::string_view description;
    bool is_picture = false;  ///< whether the format is an image without numbers
    bool draws = false;       ///< whether the file contains a drawing, for which size and resolution matter
    bool has_file_per_page = false;
    /// Returns the bytes of the file, or of one file per page. @throws FormatError for an image of a table; LayoutError
    /// if the figure does not fit its size; std::runtime_error for an error of Cairo; as the functions of `what`
    std::function<std::vector<std::string>(const Exported& what, const ExportOptions& options)> render;
};

[[nodiscard]] const std::vector<FigureFormat>& figure_formats();

/// Returns the format for a file name's extension. @throws FormatError that lists the known extensions
const FigureFormat& figure_format_for(std::string_view file_name);

/// Returns a PNG with resolution, title, caption and recipe as metadata. @throws LayoutError; FormatError for a
/// resolution outside 10 to 2,400 or a side above 32,767 pixels; std::runtime_error for an error of Cairo
[[nodiscard]] std::string render_png(const analysis::Figure& figure, const ExportOptions& options);

/// Returns an SVG with texts as outlines, and with caption and recipe in <desc>. @throws as render_pdf()
std::string render_svg(const analysis::Figure& figure, const ExportOptions& options);

/// Returns a page without references to other files: the pages of the figure as SVG, its caption and its numbers. For a
/// ranking, only the numbers. @throws as render_pdf() and the functions of `what`
[[nodiscard]] std::string render_html(const Exported& what, const ExportOptions& options);

/// Encodes an SVG file as a URL for <img>, where it keeps its own name space: the glyphs of two inline SVGs would have
/// the same ids.
[[nodiscard]] std::string data_url_of_svg(std::string_view svg);

/// Returns the pages of a figure as SVG and its caption, as a part of a page. @throws as render_pdf()
[[nodiscard]] std::string html_of_pictures(const analysis::Figure& figure, const ExportOptions& options);

/// Returns a PDF with all pages, embedded fonts, the recipe, and the date of SOURCE_DATE_EPOCH (default: of the trace).
/// @throws LayoutError; std::runtime_error for an error of Cairo
[[nodiscard]] std::string render_pdf(const analysis::Figure& figure, const ExportOptions& options);

}  // namespace kvscope::figures
