#pragma once

#include <functional>
#include <memory>
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
class FigureFormat {
 public:
    virtual ~FigureFormat() = default;

    [[nodiscard]] virtual std::string_view extension() const = 0;  ///< such as "pdf"
    [[nodiscard]] virtual std::string_view description() const = 0;

    /// Whether the format is an image, for which size and resolution matter.
    [[nodiscard]] virtual bool is_picture() const = 0;

    [[nodiscard]] virtual bool has_file_per_page() const { return false; }

    /// Returns the bytes of the file, or of one file per page. @throws FormatError for an image of a table; LayoutError
    /// if the figure does not fit its size; std::runtime_error for an error of Cairo; as the functions of `what`
    [[nodiscard]] virtual std::vector<std::string> render(const Exported& what, const ExportOptions& options) const = 0;
};

[[nodiscard]] const std::vector<std::unique_ptr<const FigureFormat>>& figure_formats();

/// Returns the format for a file name's extension. @throws FormatError that lists the known extensions
const FigureFormat& figure_format_for(std::string_view file_name);

}  // namespace kvscope::figures
