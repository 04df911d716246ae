#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "analysis/drawing/figure_definition.h"
#include "analysis/reproduce.h"
#include "analysis/runs/extrapolated_memory.h"
#include "analysis/runs/run_style.h"
#include "analysis/shell_command.h"
#include "app/cli/command.h"
#include "app/cli/inspect_echo_maps.h"
#include "app/cli/inspect_model.h"
#include "app/cli/inspect_trace.h"
#include "app/cli/option_validators.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"
#include "app/program/find_model.h"
#include "engine/checkpoint/unusable_files.h"
#include "trace/part_folder.h"
#include "trace/reader.h"

namespace kvscope::cli::inspect_file {
namespace {

namespace fs = std::filesystem;

/// Returns a shell command for each run of each prompt. Comment lines say what a command does not reproduce, and why.
std::string commands(const trace::Reader& reader, const std::string& model) {
    std::string lines;
    const auto remark = [&](const std::string& text) { lines += "# " + one_line(text) + "\n"; };
    if (model.empty() && reader.has_model())
        remark(
            fmt::format("The model is {} with the fingerprint {}. If it is not the default model, use: "
                        "kvscope inspect {} --commands -m MODEL",
                        reader.model().name, reader.model().fingerprint.substr(0, 16),
                        analysis::shell_quoted(reader.path().string())));
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        for (int run = 0; run < reader.n_runs(prompt); ++run) {
            const std::string which = fmt::format("prompt {}, {}: ", reader.prompt_number(prompt),
                                                  analysis::run_label(reader.run(prompt, run)));
            try {
                const auto made = analysis::reproduction_of_run(
                    reader, prompt, run, model, analysis::file_name_of_repeated_run(reader, prompt, run));
                for (const auto& text : made.remarks) remark(which + text);
                lines += made.command + "\n";
            } catch (const analysis::NothingToShow& error) {
                remark(fmt::format("prompt {}: {}", reader.prompt_number(prompt), error.what()));
            }
        }
    }
    if (reader.n_prompts() > 0) return lines;
    for (const auto& sample : analysis::reproductions_of_samples(reader, model)) {
        for (const auto& text : sample.remarks) remark(text);
        if (!sample.command.empty()) lines += sample.command + "\n";
    }
    return lines;
}

std::function<int()> declare(CLI::App& app) {
    const auto path = std::make_shared<fs::path>();
    const auto as_commands = std::make_shared<bool>(false);
    const auto model = std::make_shared<std::string>();
    const auto format = std::make_shared<OutputFormat>();
    const auto whole_text = std::make_shared<bool>(false);
    app.add_option("file", *path,
                   "Trace, .part folder, model (file, folder, or id in the local hub cache), or file of EchoKV maps")
        ->type_name("FILE")
        ->required();
    const auto* whole_text_flag =
        app.add_flag("--prompt-text", *whole_text, "Print the exact text of the prompts and their templates");
    auto* commands_flag =
        app.add_flag("--commands", *as_commands, "Print only the commands that reproduce each run's kept entries");
    app.add_option("-m,--model", *model, "Model for the printed commands (default: the installed model)")
        ->type_name("MODEL")
        ->needs(commands_flag);
    const auto memory = std::make_shared<MemoryColumns>();
    auto* memory_at = app.add_option("--memory-at", memory->n_tokens,
                                     "Text length in tokens, for which columns show the bytes of each cache and how "
                                     "many times smaller the cache is than the full cache")
                          ->check(CLI::Range(int64_t{1}, analysis::most_tokens_at));
    app.add_option("--memory-model", memory->model,
                   "Model whose cache --memory-at describes, with 16-bit numbers (default: the trace's model)")
        ->transform(OneOf(defined_names(analysis::known_cache_shapes())))
        ->needs(memory_at);
    app.add_flag("--budgets-grow", memory->budgets_grow,
                 "Let budgets in entries grow in proportion to the text length of --memory-at")
        ->needs(memory_at);
    commands_flag->excludes(memory_at);
    const std::vector<const CLI::Option*> of_traces = {whole_text_flag, memory_at};
    format->declare(app);
    for (const char* other : {"--prompt-text", "--format"}) commands_flag->excludes(app.get_option(other));
    return [path, format, whole_text, as_commands, model, memory, of_traces] {
        std::error_code error;
        const bool is_there = fs::exists(*path, error);
        const bool is_unfinished = !is_there && fs::exists(path->string() + ".part", error);
        // After a trace is finished, the name of its .part folder still opens the trace.
        const auto joined = is_there ? std::nullopt : trace::find_joined_trace(*path);
        const fs::path found = joined ? *joined : is_unfinished ? *path : program::find_model(*path);
        checkpoint::refuse_dangling_link(found);
        if (!is_unfinished && !fs::exists(found, error)) throw std::runtime_error(path->string() + " does not exist");
        if (*as_commands) {
            print_data(commands(trace::Reader(found), *model));
            return 0;
        }
        const bool of_maps = is_echo_maps_file(found);
        const bool is_of_hub = !joined && found != *path;
        const bool of_model = !of_maps && (is_of_hub || can_inspect_as_model(found));
        for (const CLI::Option* option : of_traces)
            if ((of_maps || of_model) && option->count() > 0)
                throw std::invalid_argument(
                    fmt::format("{} applies to traces, but {} is not a trace", option->get_name(), path->string()));
        if (of_maps) return inspect_echo_maps(found, *format);
        if (of_model) return inspect_model(found, *format);
        try {
            return inspect_trace(found, *format, *whole_text, *memory);
        } catch (const trace::NotATrace& error) {
            throw trace::NotATrace(fmt::format(
                "{}. `kvscope inspect` also accepts a model (a folder, a .gguf file, a hub id) and EchoKV maps",
                error.what()));
        }
    };
}

}  // namespace
}  // namespace kvscope::cli::inspect_file

namespace kvscope::cli {

Command inspect_command() {
    using namespace inspect_file;
    return {"inspect", "Check and describe a trace, a model or a file of maps",
            "  kvscope inspect demo.h5\n  kvscope inspect demo.h5 --format json\n"
            "  kvscope inspect demo.h5 --memory-at 131072 --memory-model Llama-3.1-8B\n  kvscope inspect model.gguf",
            declare};
}

}  // namespace kvscope::cli
