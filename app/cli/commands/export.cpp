#include <filesystem>
#include <memory>

#include "analysis/figure_definition.h"
#include "app/cli/command.h"
#include "app/cli/layers.h"
#include "app/figures/export_figure.h"
#include "app/program/version.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

struct Arguments {
    std::filesystem::path trace;
    std::string figure;
    std::string layers;
    std::string heads;
    analysis::FigureOptions options;
    figures::ExportOptions file;
    std::filesystem::path output;
    bool force = false;
};

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    app.add_option("trace", arguments->trace, "A trace, or the .part folder of an unfinished one")
        ->required()
        ->type_name("TRACE.h5");
    app.add_option("--figure", arguments->figure, "Which figure; `kvscope figures` lists them")->required();
    app.add_option("-o,--output", arguments->output,
                   "Where to; the extension says how: pdf, svg, png, csv, md, tex, json, jsonl")
        ->required();
    app.add_option("--prompt", arguments->options.prompt, "Which prompt, from 0")->capture_default_str();
    app.add_option("--run,--runs", arguments->options.runs, "Runs by label, policy or number; repeatable");
    app.add_option("--layer,--layers", arguments->layers, "Layers, as in 0,5,10-12");
    app.add_option("--head,--heads", arguments->heads, "Query heads, as in 0,5-7");
    app.add_option("--column,--columns", arguments->options.columns,
                   "Columns of the table of runs, x and y; repeatable")
        ->delimiter(',');
    app.add_option("--source", arguments->options.source,
                   "Which of several measures of one kind (see `kvscope figures`)");
    app.add_flag("--title", arguments->options.title, "Draw the title");
    app.add_option("--width", arguments->options.width_mm, "Width in mm (default: the figure's own)")
        ->check(CLI::PositiveNumber);
    app.add_option("--height", arguments->options.height_mm, "Height in mm")->check(CLI::PositiveNumber);
    app.add_option("--dpi", arguments->file.dpi, "Dots per inch of a PNG")->capture_default_str();
    app.add_flag("--force", arguments->force, "Replace an existing file");
    return [arguments] {
        const auto& definition = analysis::figure_definition(arguments->figure);
        arguments->options.layers = layers_from_text(arguments->layers);
        arguments->options.heads = layers_from_text(arguments->heads, "heads");
        arguments->file.creator = std::string("kvscope ") + program::version();
        const trace::Reader reader(arguments->trace);
        figures::export_figure(reader, definition, arguments->options, arguments->output, arguments->file,
                               arguments->force);
        return 0;
    };
}

}  // namespace

Command export_command() {
    return {"export", "Draw a figure of a trace, or write its numbers",
            "  kvscope export demo.h5 --figure retention --run snapkv --run aperturekv -o retention.pdf\n"
            "  kvscope export demo.h5 --figure jsd --layer 0,8,16 -o jsd.csv",
            declare};
}

}  // namespace kvscope::cli
