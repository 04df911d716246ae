#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/figure_definition.h"

namespace kvscope::figures {

struct ExportOptions {
    double dpi = 300;                 ///< resolution of PNG files and, in PDF and SVG, of maps with finer cells
    std::string creator = "kvscope";  ///< program and version, for the file's metadata
    bool csv_safe = false;            ///< apply analysis::safe_for_spreadsheets to CSV
};

/// The file's extension is not a known format, or the resolution is out of range.
struct FormatError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// A figure and its numbers, each made on request. Without `figure`, the object is a table only.
struct Exported {
    std::function<analysis::Figure()> figure;
    std::function<analysis::Table()> numbers;
    /// Throws analysis::NothingToShow before anything is made if the figure has no data. May be empty.
    std::function<void()> check = {};
};

/// Returns a figure of one trace for export. Definition and reader must outlive the result.
Exported exported(const analysis::FigureDefinition& definition, const trace::Reader& reader,
                  const analysis::FigureOptions& options);

/// A file format for figures. The same figure and options give the same bytes.
class FigureFormat {
 public:
    virtual ~FigureFormat() = default;

    virtual std::string_view extension() const = 0;    ///< such as "pdf"
    virtual std::string_view description() const = 0;  ///< one line for people

    /// Whether the format is an image, for which size and resolution matter.
    virtual bool is_picture() const = 0;

    /// Whether each page of a figure is a file of its own.
    virtual bool is_a_file_a_page() const { return false; }

    /// Returns the file, or one file per page if is_a_file_a_page(). @throws what `what` throws; FormatError for an
    /// image of a table; LayoutError if the figure does not fit its size; std::runtime_error for an error of Cairo
    virtual std::vector<std::string> render(const Exported& what, const ExportOptions& options) const = 0;
};

const std::vector<std::unique_ptr<const FigureFormat>>& figure_formats();

/// Returns the format for a file name's extension. @throws FormatError with the known extensions
const FigureFormat& figure_format_for(std::string_view file_name);

}  // namespace kvscope::figures
