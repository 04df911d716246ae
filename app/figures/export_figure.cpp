#include "app/figures/export_figure.h"

#include "app/figures/output_file.h"

namespace kvscope::figures {

void export_figure(const Exported& what, const std::filesystem::path& path, const ExportOptions& options, bool force) {
    const FigureFormat& format = figure_format_for(path.filename().string());
    if (!force) refuse_existing(path);
    write_whole_file(path, format.render(what, options), force);
}

void export_figure(const trace::Reader& reader, const analysis::FigureDefinition& definition,
                   const analysis::FigureOptions& figure_options, const std::filesystem::path& path,
                   const ExportOptions& options, bool force) {
    export_figure(exported(definition, reader, figure_options), path, options, force);
}

}  // namespace kvscope::figures
