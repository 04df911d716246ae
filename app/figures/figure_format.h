#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/figure_definition.h"

namespace kvscope::figures {

struct ExportOptions {
    double dpi = 300;                 ///< of PNG; in PDF and SVG, of maps with cells finer than that
    std::string creator = "kvscope";  ///< program and version, into the file's metadata
    bool csv_safe = false;            ///< analysis::safe_for_spreadsheets, of CSV
};

/// An extension that no format has, or a resolution that cannot be drawn.
struct FormatError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// A picture and the numbers behind it, each made when it is asked for. Without `figure`: a table that is no picture.
struct Exported {
    std::function<analysis::Figure()> figure;
    std::function<analysis::Table()> numbers;
    /// Throws analysis::NothingToShow where there is no such figure, before anything is made; empty: nobody knows.
    std::function<void()> check = {};
};

/// Of one trace; definition and reader have to outlive it.
Exported exported(const analysis::FigureDefinition& definition, const trace::Reader& reader,
                  const analysis::FigureOptions& options);

/// What a figure can be written as. The same options on the same trace give the same bytes.
class FigureFormat {
 public:
    virtual ~FigureFormat() = default;

    virtual std::string_view extension() const = 0;    ///< "pdf"
    virtual std::string_view description() const = 0;  ///< one line for people

    /// Whether it is a picture, which size and resolution are of.
    virtual bool is_picture() const = 0;

    /// Whether it has no pages of its own, so that each page of a figure is a file.
    virtual bool is_a_file_a_page() const { return false; }

    /// The whole file; of a figure of several pages one file a page, where the format has no pages of its own.
    /// @throws what the functions throw, FormatError for a picture of what has none, LayoutError where the size does
    /// not do, std::runtime_error where Cairo fails.
    virtual std::vector<std::string> render(const Exported& what, const ExportOptions& options) const = 0;
};

/// pdf, svg, png, csv, md, tex, json, jsonl.
const std::vector<std::unique_ptr<const FigureFormat>>& figure_formats();

/// By the extension of a file name, upper and lower case alike. @throws FormatError naming the known ones.
const FigureFormat& figure_format_for(std::string_view file_name);

}  // namespace kvscope::figures
