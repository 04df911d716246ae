#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "analysis/cost_table.h"
#include "analysis/figure_definition.h"
#include "analysis/table_format.h"
#include "app/cli/command.h"
#include "app/cli/engine/run_job.h"
#include "app/cli/output_option.h"
#include "app/program/paths.h"
#include "app/program/version.h"
#include "app/figures/export_figure.h"
#include "policies/interface/registry.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

/// The main job on the default model: every policy at two budgets on the demo prompt, the figures, the table.
int demo(const fs::path& folder, bool force) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw std::runtime_error(folder.string() + " cannot be made: " + error.message());
    RunJob job;
    std::string question = program::read_text(program::asset("demo/demo_question.txt"));
    while (!question.empty() && question.back() == '\n') question.pop_back();
    job.prompts.push_back({"demo", program::read_text(program::asset("demo/demo_context.txt")), {question}});
    for (const auto& definition : policies::definitions()) job.policies.push_back(definition.name);
    job.budgets = {"64,256"};
    job.experiment.n_new = 48;
    job.analyze = true;
    job.output = folder / "demo.h5";
    job.force = force;
    const int result = run(job);

    const trace::Reader reader(job.output);
    fmt::print(stderr, "drawing the figures\n");
    const figures::ExportOptions options{300, std::string("kvscope ") + program::version()};
    std::string written;
    for (const auto& definition : analysis::figure_definitions()) {
        for (const char* extension : {".pdf", ".png", ".csv"}) {
            const fs::path path = folder / ("demo-" + definition.name + extension);
            figures::export_figure(reader, definition, {}, path, options, true);
            written += fmt::format("  {}\n", path.string());
        }
    }
    print(fmt::format("{}\n{} asked: {}\n",
                      analysis::format_table(analysis::cost_table(reader, 0), analysis::TableFormat::text),
                      reader.model().name, question));
    for (const auto& record : reader.runs(0)) print(fmt::format("  {:28} {}\n", record.label, record.output_text));
    print(fmt::format("\nTrace and figures:\n  {}\n{}", job.output.string(), written));
    return result;
}

std::function<int()> declare(CLI::App& app) {
    const auto folder = std::make_shared<fs::path>("kvscope-demo");
    const auto force = std::make_shared<bool>(false);
    app.add_option("folder", *folder, "Where the trace and the figures go")->capture_default_str();
    app.add_flag("--force", *force, "Replace a trace of another recipe");
    return [folder, force] { return demo(*folder, *force); };
}

}  // namespace

Command demo_command() {
    Command command{"demo", "Every policy on the demo prompt, with figures and a table", "  kvscope demo", declare};
    command.hidden = true;
#ifndef KVSCOPE_WITH_GUI
    command.by_default = true;
#endif
    return command;
}

}  // namespace kvscope::cli
