#include "app/figures/export_figure.h"

#include <fmt/format.h>

#include <optional>

#include "app/figures/output_file.h"

namespace kvscope::figures {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(const fs::path& path, const std::string& suffix) {
    return path.parent_path() / fmt::format("{}-{}{}", path.stem().string(), suffix, path.extension().string());
}

std::vector<fs::path> page_paths(const fs::path& path, size_t n_pages) {
    if (n_pages == 1) return {path};
    std::vector<fs::path> paths;
    for (size_t page = 1; page <= n_pages; ++page) paths.push_back(with_suffix(path, std::to_string(page)));
    return paths;
}

/// The same, which makes its figure once for however many formats.
Exported made_once(Exported what) {
    const auto figure = std::make_shared<std::optional<analysis::Figure>>();
    what.figure = [figure, make = std::move(what.figure)] {
        if (!*figure) *figure = make();
        return **figure;
    };
    return what;
}

}  // namespace

std::vector<fs::path> export_figure(const Exported& what, const fs::path& path, const ExportOptions& options,
                                    bool force) {
    const FigureFormat& format = figure_format_for(path.filename().string());
    if (!force) refuse_existing(path);
    if (what.check) what.check();
    const std::vector<std::string> files = format.render(what, options);
    const std::vector<fs::path> paths = page_paths(path, files.size());
    for (const fs::path& page : paths) {
        if (!force) refuse_existing(page);
    }
    for (size_t i = 0; i < files.size(); ++i) write_whole_file(paths[i], files[i], force);
    return paths;
}

std::vector<fs::path> export_figure(const trace::Reader& reader, const analysis::FigureDefinition& definition,
                                    const analysis::FigureOptions& figure_options, const fs::path& path,
                                    const ExportOptions& options, bool force) {
    return export_figure(exported(definition, reader, figure_options), path, options, force);
}

fs::path path_of_figure(const fs::path& path, const std::string& figure) { return with_suffix(path, figure); }

ExportedFigures export_figures(const std::vector<const analysis::FigureDefinition*>& definitions,
                               const std::function<Exported(const analysis::FigureDefinition&)>& what,
                               const std::vector<fs::path>& paths, const ExportOptions& options, bool force) {
    for (const fs::path& path : paths) {
        figure_format_for(path.filename().string());
        for (const auto* definition : definitions) {
            if (!force) refuse_existing(path_of_figure(path, definition->name));
        }
    }
    ExportedFigures exported;
    for (const auto* definition : definitions) {
        try {
            const Exported one = made_once(what(*definition));
            for (const fs::path& path : paths) {
                const auto written = export_figure(one, path_of_figure(path, definition->name), options, force);
                exported.written.insert(exported.written.end(), written.begin(), written.end());
            }
        } catch (const analysis::NothingToShow& nothing) {
            exported.left_out.push_back({definition->name, nothing.what()});
        }
    }
    return exported;
}

}  // namespace kvscope::figures
