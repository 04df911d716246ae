#include <fmt/format.h>

#include "analysis/cost_table.h"
#include "analysis/figure_definition.h"
#include "analysis/table_format.h"
#include "app/cli/engine/run_in_terminal.h"
#include "app/cli/output_option.h"
#include "app/figures/export_figure.h"
#include "app/program/version.h"
#include "trace/reader.h"

namespace kvscope::cli {

namespace fs = std::filesystem;

int run_demo_in_terminal(const fs::path& folder, bool force) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw std::runtime_error(folder.string() + " cannot be made: " + error.message());
    auto job = program::demo_job(folder / "demo.h5");
    job.force = force;
    const int result = run_in_terminal(job, {});

    const trace::Reader reader(job.output);
    complain("drawing the figures");
    const figures::ExportOptions options{300, std::string("kvscope ") + program::version()};
    std::string written;
    for (const auto& definition : analysis::figure_definitions()) {
        for (const char* extension : {".pdf", ".png", ".csv"}) {
            const fs::path path = folder / ("demo-" + definition.name + extension);
            figures::export_figure(reader, definition, {}, path, options, true);
            written += fmt::format("  {}\n", path.string());
        }
    }
    print(fmt::format(
        "{}\n{} asked: {}\n",
        analysis::format_table(analysis::cost_table(reader, 0), analysis::TableFormat::text, terminal_width()),
        reader.model().name, job.prompts.front().questions.front()));
    for (const auto& record : reader.runs(0)) print(fmt::format("  {:28} {}\n", record.label, record.output_text));
    print(fmt::format("\nTrace and figures:\n  {}\n{}", job.output.string(), written));
    return result;
}

}  // namespace kvscope::cli
