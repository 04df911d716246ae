#include "app/figures/export_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <system_error>

#include "app/figures/layout.h"
#include "common/whole_file.h"

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

Exported made_once(Exported what) {
    if (!what.figure) return what;
    const auto figure = std::make_shared<std::optional<analysis::Figure>>();
    what.figure = [figure, make = std::move(what.figure)] {
        if (!*figure) *figure = make();
        return **figure;
    };
    return what;
}

template <class MayReplace>
std::vector<fs::path> write_figure(const Exported& what, const fs::path& path, const ExportOptions& options,
                                   const MayReplace& may_replace) {
    const FigureFormat& format = figure_format_for(path.filename().string());
    if (what.check) what.check();  // errors in options are reported before existing files
    if (!may_replace(path)) refuse_existing(path);
    const std::vector<std::string> files = format.render(what, options);
    std::vector<fs::path> paths = page_paths(path, files.size());
    for (const fs::path& page : paths)
        if (!may_replace(page)) refuse_existing(page);
    for (size_t i = 0; i < files.size(); ++i) write_whole_file(paths[i], files[i], may_replace(paths[i]));
    return paths;
}

bool has_file_per_page(const fs::path& path) {
    try {
        return figure_format_for(path.filename().string()).has_file_per_page;
    } catch (const FormatError&) {
        return false;
    }
}

/// Returns 12 for "x-12.svg" of "x.svg", and 0 for other names.
size_t page_number(const std::string& name, const fs::path& path) {
    const std::string start = path.stem().string() + "-";
    const std::string end = path.extension().string();
    if (name.size() <= start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end)) return 0;
    size_t number = 0;
    const char* last = name.data() + name.size() - end.size();
    const auto [stop, error] = std::from_chars(name.data() + start.size(), last, number);
    return error == std::errc() && stop == last && with_suffix(path, std::to_string(number)).filename() == name ? number
                                                                                                                : 0;
}

std::map<size_t, fs::path> pages_there(const fs::path& path) {
    std::map<size_t, fs::path> pages;
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    std::error_code error;
    for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
        const fs::path name = at->path().filename();
        if (const size_t page = page_number(name.string(), path)) pages[page] = path.parent_path() / name;
    }
    return pages;
}

}  // namespace

std::vector<fs::path> export_figure(const Exported& what, const fs::path& path, const ExportOptions& options,
                                    bool force) {
    return write_figure(what, path, options, [force](const fs::path&) { return force; });
}

std::vector<fs::path> export_figure(const Exported& what, const fs::path& path, const ExportOptions& options,
                                    const std::vector<fs::path>& confirmed) {
    return write_figure(what, path, options,
                        [&](const fs::path& file) { return std::ranges::find(confirmed, file) != confirmed.end(); });
}

std::vector<fs::path> files_to_replace(const fs::path& path, bool may_have_pages) {
    std::vector<fs::path> files;
    std::error_code error;
    if (fs::exists(fs::symlink_status(path, error))) files.push_back(path);
    if (!may_have_pages || !has_file_per_page(path)) return files;
    for (const auto& [number, page] : pages_there(path)) files.push_back(page);
    return files;
}

std::vector<fs::path> export_figure(const trace::Reader& reader, const analysis::FigureDefinition& definition,
                                    const analysis::FigureOptions& figure_options, const fs::path& path,
                                    const ExportOptions& options, bool force) {
    return export_figure(figure_to_export(definition, reader, figure_options), path, options, force);
}

fs::path path_of_figure(const fs::path& path, const std::string& figure) { return with_suffix(path, figure); }

ExportedFigures export_figures(const std::vector<const analysis::FigureDefinition*>& definitions,
                               const std::function<Exported(const analysis::FigureDefinition&)>& what,
                               const std::vector<fs::path>& paths, const ExportOptions& options, bool force) {
    for (const fs::path& path : paths) {
        figure_format_for(path.filename().string());
        for (const auto* definition : definitions)
            if (!force) refuse_existing(path_of_figure(path, definition->name));
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
        } catch (const FileExists&) {
            throw;
        } catch (const FileNotWritten&) {
            throw;
        } catch (const LayoutError& error) {  // the size is too small for the panels, as for several traces
            exported.failed.push_back({definition->name, error.what()});
        } catch (const std::runtime_error& error) {
            exported.failed.push_back({definition->name, error.what()});
        }
    }
    return exported;
}

}  // namespace kvscope::figures
