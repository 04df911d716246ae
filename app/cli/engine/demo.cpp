#include <fmt/format.h>

#include "analysis/drawing/figure_definition.h"
#include "app/cli/engine/run_in_terminal.h"
#include "app/cli/terminal.h"
#include "app/figures/export_figure.h"
#include "app/program/version.h"
#include "trace/reader.h"

namespace kvscope::cli {

namespace fs = std::filesystem;

namespace {

/// Draws all figures as PDF, PNG and CSV next to the trace and prints their paths. @returns false if a figure failed
bool draw_figures(const trace::Reader& reader) {
    print_to_stderr("drawing figures");
    std::vector<const analysis::FigureDefinition*> definitions;
    for (const auto& definition : analysis::figure_definitions()) definitions.push_back(&definition);
    std::vector<fs::path> paths;
    for (const char* extension : {".pdf", ".png", ".csv"})
        paths.push_back(fs::path(reader.path()).replace_extension(extension));
    const auto exported = figures::export_figures(
        definitions,
        [&](const analysis::FigureDefinition& definition) { return figures::figure_to_export(definition, reader, {}); },
        paths, {300, std::string("kvscope ") + program::version()}, true);
    std::string text = fmt::format("\nTrace and figures:\n  {}\n", reader.path().string());
    for (const fs::path& path : exported.written) text += fmt::format("  {}\n", path.string());
    if (!exported.left_out.empty()) text += "\nOmitted, because the trace does not contain their data:\n";
    for (const auto& [figure, reason] : exported.left_out) text += fmt::format("  {}: {}\n", figure, reason);
    print(text);
    for (const auto& [figure, reason] : exported.failed)
        print_to_stderr(fmt::format("kvscope: failed: {}: {}", figure, reason));
    return exported.failed.empty();
}

}  // namespace

int run_demo_in_terminal(const fs::path& folder, bool force) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw std::runtime_error(folder.string() + " cannot be created: " + error.message());
    auto job = program::demo_job(folder / "demo.h5");
    job.force = force;
    const int result = run_in_terminal(job, {});
    const bool are_drawn = draw_figures(trace::Reader(job.output));
    return result == 0 && !are_drawn ? 1 : result;
}

}  // namespace kvscope::cli
