#pragma once

#include <filesystem>
#include <stdexcept>

#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// As below, of whatever is made by `what`.
void export_figure(const Exported& what, const std::filesystem::path& path, const ExportOptions& options, bool force);

/// Writes one figure, or its numbers, to a file whose extension says how. The file appears whole or not at all.
/// @throws OutputExists (app/figures/output_file.h) for a file that is there already unless `force`, OutputFailed where
/// it cannot be written, and what FigureFormat::render throws. An existing file is refused before anything is computed.
void export_figure(const trace::Reader& reader, const analysis::FigureDefinition& definition,
                   const analysis::FigureOptions& figure_options, const std::filesystem::path& path,
                   const ExportOptions& options, bool force);

}  // namespace kvscope::figures
