#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"

namespace kvscope::figures {

std::vector<std::filesystem::path> export_figure(const Exported& what, const std::filesystem::path& path,
                                                 const ExportOptions& options, bool force);

/// Replaces only the files in `confirmed`, a result of files_to_replace().
std::vector<std::filesystem::path> export_figure(const Exported& what, const std::filesystem::path& path,
                                                 const ExportOptions& options,
                                                 const std::vector<std::filesystem::path>& confirmed);

/// Returns the existing files that an export to `path` would replace: `path`, or all of its pages ("x-1.svg", …) in
/// formats with one file per page. @param may_have_pages see FigureDefinition
[[nodiscard]] std::vector<std::filesystem::path> files_to_replace(const std::filesystem::path& path,
                                                                  bool may_have_pages);

/// Writes a figure or its numbers in the format of the extension. An error leaves no partial file.
/// @returns the written files: `path`, or "x-1.png", "x-2.png", … for several pages as SVG or PNG
/// @throws FileExists unless `force`; FileNotWritten; NothingToShow if the figure has no data; the exceptions of
/// FigureFormat::render
std::vector<std::filesystem::path> export_figure(const trace::Reader& reader,
                                                 const analysis::FigureDefinition& definition,
                                                 const analysis::FigureOptions& figure_options,
                                                 const std::filesystem::path& path, const ExportOptions& options,
                                                 bool force);

struct LeftOut {
    std::string figure;
    std::string reason;
};

struct ExportedFigures {
    std::vector<std::filesystem::path> written;
    std::vector<LeftOut> left_out;
    std::vector<LeftOut> failed;
};

/// Returns the file for one of several figures: "demo-retention.pdf" for "demo.pdf".
[[nodiscard]] std::filesystem::path path_of_figure(const std::filesystem::path& path, const std::string& figure);

/// Exports each figure to each of `paths`, named as in path_of_figure(). If one figure fails, still exports the others.
/// @throws as export_figure for unknown formats and for existing or unwritable files
[[nodiscard]] ExportedFigures export_figures(const std::vector<const analysis::FigureDefinition*>& definitions,
                                             const std::function<Exported(const analysis::FigureDefinition&)>& what,
                                             const std::vector<std::filesystem::path>& paths,
                                             const ExportOptions& options, bool force);

}  // namespace kvscope::figures
