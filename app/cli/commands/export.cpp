#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "analysis/figure_definition.h"
#include "analysis/run_choice.h"
#include "analysis/run_style.h"
#include "analysis/several_traces.h"
#include "app/cli/command.h"
#include "app/cli/layers.h"
#include "app/figures/export_figure.h"
#include "app/program/version.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
    std::vector<fs::path> traces;
    std::string figure;
    std::string layers;
    std::string heads;
    bool difference = false;
    analysis::FigureOptions options;
    figures::ExportOptions file;
    fs::path output;
    bool force = false;
};

/// Their stems, or whole paths where stems are alike.
std::vector<std::string> names_of(const std::vector<fs::path>& traces) {
    std::vector<std::string> names;
    for (const auto& trace : traces) {
        const bool is_alone = std::count_if(traces.begin(), traces.end(),
                                            [&](const fs::path& other) { return other.stem() == trace.stem(); }) == 1;
        names.push_back(is_alone ? trace.stem().string() : trace.string());
    }
    return names;
}

std::vector<analysis::TracePart> parts_of_traces(const std::vector<trace::Reader>& readers,
                                                 const Arguments& arguments) {
    std::vector<analysis::TracePart> parts;
    for (const auto& reader : readers) parts.push_back({&reader, arguments.options});
    if (parts.size() == 1) return parts;
    std::vector<std::vector<trace::RunAttributes>> runs;
    for (const auto& reader : readers) {
        const bool has_prompt = arguments.options.prompt >= 0 && arguments.options.prompt < reader.n_prompts();
        runs.push_back(has_prompt ? reader.runs(arguments.options.prompt) : std::vector<trace::RunAttributes>());
    }
    const auto styles = analysis::joint_run_styles(runs);
    const auto names = names_of(arguments.traces);
    for (size_t i = 0; i < parts.size(); ++i) {
        parts[i].name = names[i];
        parts[i].styles = styles[i];
    }
    return parts;
}

/// Two traces, or two runs of one.
std::vector<analysis::TracePart> parts_of_difference(const std::vector<trace::Reader>& readers,
                                                     const Arguments& arguments) {
    const auto& names = arguments.options.runs;
    if (readers.size() == 2) return parts_of_traces(readers, arguments);
    if (readers.size() != 1 || names.size() != 2)
        throw analysis::FigureError(
            fmt::format("--difference takes two traces, or one trace and two --run; given: {} and {}", readers.size(),
                        names.size()));
    const trace::Reader& reader = readers.front();
    std::vector<analysis::TracePart> parts;
    for (const auto& name : names) {
        analysis::FigureOptions options = arguments.options;
        options.runs = {name};
        const auto runs = analysis::chosen_runs(reader, options);
        if (runs.size() != 1)
            throw analysis::FigureError(fmt::format(
                "--difference: --run {} names {} runs; choose one by its label or number", name, runs.size()));
        parts.push_back({&reader, options, analysis::run_label(reader.run(options.prompt, runs.front()))});
    }
    return parts;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    app.add_option("trace", arguments->traces,
                   "A trace, or the .part folder of an unfinished one; several stand in one figure, on one scale")
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
    app.add_flag("--difference", arguments->difference,
                 "The first less the second: of two traces, or of two --run of one");
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
        std::vector<trace::Reader> readers;
        for (const auto& trace : arguments->traces) readers.emplace_back(trace);
        const auto parts =
            arguments->difference ? parts_of_difference(readers, *arguments) : parts_of_traces(readers, *arguments);
        figures::Exported what;
        if (arguments->difference) {
            what.figure = [&] { return analysis::make_difference(definition, parts[0], parts[1]); };
            what.numbers = [&] { return analysis::difference_numbers(definition, parts[0], parts[1]); };
        } else {
            what.figure = [&] { return analysis::make_figure(definition, parts); };
            what.numbers = [&] { return analysis::make_numbers(definition, parts); };
        }
        figures::export_figure(what, arguments->output, arguments->file, arguments->force);
        return 0;
    };
}

}  // namespace

Command export_command() {
    return {"export", "Draw a figure of a trace, or write its numbers",
            "  kvscope export demo.h5 --figure retention --run snapkv --run aperturekv -o retention.pdf\n"
            "  kvscope export demo.h5 --figure jsd --layer 0,8,16 -o jsd.csv\n"
            "  kvscope export mine.h5 theirs.h5 --figure step-kl --run snapkv -o both.pdf\n"
            "  kvscope export demo.h5 --figure retention --run 3 --run 5 --difference -o difference.pdf",
            declare};
}

}  // namespace kvscope::cli
