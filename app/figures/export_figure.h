#pragma once

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// As below, of whatever is made by `what`.
std::vector<std::filesystem::path> export_figure(const Exported& what, const std::filesystem::path& path,
                                                 const ExportOptions& options, bool force);

/// The same, which replaces those files alone that are among `confirmed`, as files_to_replace gives them.
std::vector<std::filesystem::path> export_figure(const Exported& what, const std::filesystem::path& path,
                                                 const ExportOptions& options,
                                                 const std::vector<std::filesystem::path>& confirmed);

/// What an export to `path` may replace, for asking beforehand: `path` where something is there and, where the format
/// has a file a page, "x-1.svg", "x-2.svg", … of "x.svg", by their numbers. A page's number can be larger than the
/// figure's last. What cannot be looked at counts as not there. Throws nothing for any path.
/// @param may_have_pages as FigureDefinition has it; false: `path` alone
std::vector<std::filesystem::path> files_to_replace(const std::filesystem::path& path, bool may_have_pages);

/// Writes one figure, or its numbers, to a file whose extension says how. Each file appears whole or not at all.
/// @returns the files written: `path` alone, or of a figure with several pages as SVG or PNG one a page, "x-1.png",
/// "x-2.png" for "x.png"
/// @throws OutputExists (app/figures/whole_file.h) for a file that is there already unless `force`, OutputFailed where
/// it cannot be written, analysis::NothingToShow where there is no such figure, and what FigureFormat::render throws.
/// An existing file is refused before anything is computed.
std::vector<std::filesystem::path> export_figure(const trace::Reader& reader,
                                                 const analysis::FigureDefinition& definition,
                                                 const analysis::FigureOptions& figure_options,
                                                 const std::filesystem::path& path, const ExportOptions& options,
                                                 bool force);

/// A figure that cannot be had, and why.
struct LeftOut {
    std::string figure;
    std::string reason;
};

struct ExportedFigures {
    std::vector<std::filesystem::path> written;
    std::vector<LeftOut> left_out;
    std::vector<LeftOut> failed;
};

/// "demo-retention.pdf" of "demo.pdf": where one of several figures goes.
std::filesystem::path path_of_figure(const std::filesystem::path& path, const std::string& figure);

/// Several figures, each into all of `paths` by its name (path_of_figure). Those that there is no data for
/// (analysis::NothingToShow) are left out, and those that fail, as by a damaged data set or for want of room, stop no
/// other.
/// @throws as export_figure what is no single figure's: what was asked for, and files that cannot be written
ExportedFigures export_figures(const std::vector<const analysis::FigureDefinition*>& definitions,
                               const std::function<Exported(const analysis::FigureDefinition&)>& what,
                               const std::vector<std::filesystem::path>& paths, const ExportOptions& options,
                               bool force);

}  // namespace kvscope::figures
