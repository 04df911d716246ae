#include "app/cli/export_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <variant>

#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

/// Returns the stem of each path, or the whole path if its stem is not unique.
std::vector<std::string> names_of(const std::vector<fs::path>& traces) {
    std::vector<std::string> names;
    for (const auto& trace : traces) {
        const bool is_alone = std::count_if(traces.begin(), traces.end(),
                                            [&](const fs::path& other) { return other.stem() == trace.stem(); }) == 1;
        names.push_back(is_alone ? trace.stem().string() : trace.string());
    }
    return names;
}

}  // namespace

std::vector<analysis::TracePart> parts_of_traces(const ExportedTraces& traces, const analysis::FigureOptions& options) {
    const auto& readers = traces.readers;
    std::vector<analysis::TracePart> parts;
    for (const auto& reader : readers) parts.push_back({&reader, options});
    if (parts.size() == 1) return parts;
    std::vector<std::vector<trace::RunAttributes>> runs;
    for (size_t i = 0; i < parts.size(); ++i) {
        const int prompt = parts[i].options.prompt = traces.prompts[i];
        const bool has_prompt = prompt >= 0 && prompt < readers[i].n_prompts();
        runs.push_back(has_prompt ? readers[i].runs(prompt) : std::vector<trace::RunAttributes>());
    }
    const auto styles = analysis::run_styles_of_traces(runs);
    const auto names = names_of(traces.paths);
    for (size_t i = 0; i < parts.size(); ++i) {
        parts[i].name = names[i];
        parts[i].styles = styles[i];
    }
    return parts;
}

std::vector<analysis::TracePart> parts_of_difference(const ExportedTraces& traces,
                                                     const analysis::FigureOptions& chosen) {
    const auto& readers = traces.readers;
    if (readers.size() == 2) return parts_of_traces(traces, chosen);
    const trace::Reader& reader = readers.front();
    std::vector<analysis::RunChoice> choices = chosen.runs;
    if (readers.size() == 1 && choices.size() == 1) {  // one name, such as a policy, can name both runs
        const auto runs = analysis::chosen_runs(reader, chosen);
        if (runs.size() != 2)
            throw analysis::FigureError(fmt::format("--difference within one trace needs two runs; --run {} names {}",
                                                    std::get<std::string>(choices.front()), runs.size()));
        choices.assign(runs.begin(), runs.end());
    }
    if (readers.size() != 1 || choices.size() != 2)
        throw analysis::FigureError(
            fmt::format("--difference needs two traces, or one trace and two --run; found {} traces and {} --run",
                        readers.size(), choices.size()));
    std::vector<analysis::TracePart> parts;
    for (const auto& choice : choices) {
        analysis::FigureOptions options = chosen;
        options.runs = {choice};
        const auto runs = analysis::chosen_runs(reader, options);
        if (runs.size() != 1)
            throw analysis::FigureError(
                fmt::format("--difference: --run {} names {} runs; give the label or number of one run",
                            std::get<std::string>(choice), runs.size()));
        parts.push_back({&reader, options, analysis::run_label(reader.run(options.prompt, runs.front()))});
    }
    return parts;
}

}  // namespace kvscope::cli
