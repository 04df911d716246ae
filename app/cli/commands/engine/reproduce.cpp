#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "analysis/runs/model_in_words.h"
#include "analysis/shell_command.h"
#include "analysis/tables/table_format.h"
#include "app/cli/command.h"
#include "app/cli/option_validators.h"
#include "app/cli/reproduce/paper_commands.h"
#include "app/cli/reproduce/reproduced_items.h"
#include "app/cli/reproduce/reproduction_folder.h"
#include "app/cli/stop_signal.h"
#include "app/cli/sweep/child_processes.h"
#include "app/cli/sweep/sweep_runner.h"
#include "app/cli/terminal.h"
#include "app/papers/item_figure.h"
#include "app/papers/page.h"
#include "app/papers/paper.h"
#include "app/program/version.h"
#include "common/stopped.h"
#include "common/whole_file.h"
#include "trace/reader.h"

namespace kvscope::cli::reproduce_file {
namespace {

namespace fs = std::filesystem;

constexpr const char* page_name = "index.html";
constexpr const char* findings_name = "findings.csv";

struct Arguments {
    std::string paper;
    PaperSettings settings;
    fs::path folder;
    bool quiet = false;
};

/// Makes the files and traces of a paper, one after another. A failing trace fails alone.
class TraceMaker {
 public:
    TraceMaker(const papers::Paper& paper, const PaperCommands& commands, const SweepFolder& folder, bool quiet,
               const std::stop_token& stop)
        : paper_(paper), commands_(commands), folder_(folder), quiet_(quiet), stop_(stop) {}

    /// Returns why a trace was not made, by its name.
    /// @throws std::invalid_argument if the folder contains traces of other settings
    std::map<std::string, std::string> make_all() {
        commands_.write_texts();
        require_same_settings();
        std::map<std::string, std::string> missing;
        std::vector<SweepTrace> swept;
        for (const papers::PaperTrace& trace : paper_.traces) {
            try {
                for (const auto* preparation : commands_.preparations_of(trace)) prepare(*preparation);
                SweepTrace made = commands_.trace(trace);
                if (trace.command == "run" || trace.command == "eval")
                    swept.push_back(std::move(made));
                else
                    make_alone(made, folder_.trace_file(made));
            } catch (const Stopped&) {
                throw;
            } catch (const FileNotWritten&) {
                throw;
            } catch (const std::exception& error) {
                missing[trace.name] = error.what();
                say(fmt::format("{}: not made: {}", trace.name, error.what()));
            }
        }
        const auto outcomes = run_sweep(folder_, swept, {.quiet = quiet_}, stop_);
        for (size_t i = 0; i < swept.size(); ++i)
            if (outcomes[i].state == SweepOutcome::State::failed) missing[swept[i].name] = outcomes[i].reason;
        return missing;
    }

 private:
    void say(const std::string& text) const {
        if (!quiet_) print_to_stderr(text);
    }

    void require_same_settings() const {
        const auto check = [this](const SweepTrace& made) {
            const auto last = folder_.last_attempt({&made});
            if (!last || last->arguments == made.arguments) return;
            throw std::invalid_argument(
                fmt::format("{}: {} was made with other settings: choose another folder with -o, or delete this one",
                            folder_.path().string(), made.name));
        };
        for (const papers::Preparation& preparation : paper_.preparations)
            check({preparation.name, commands_.preparation(preparation)});
        for (const papers::PaperTrace& trace : paper_.traces) {
            try {
                check(commands_.trace(trace));
            } catch (const MissingData&) {
                continue;  // make_all() says what is missing
            }
        }
    }

    void prepare(const papers::Preparation& preparation) {
        const fs::path file = papers::prepared_file(preparation, folder_.path());
        create_output_folder(file.parent_path());
        make_alone({preparation.name, commands_.preparation(preparation)}, file);
    }

    /// Runs a command, unless the same command has already made the output. Restarts an interrupted command.
    void make_alone(const SweepTrace& trace, const fs::path& output) {
        const SweepPart part{&trace};
        const auto last = folder_.last_attempt(part);
        std::error_code error;
        if (last && last->is_complete && last->arguments == trace.arguments && fs::exists(output, error)) return;
        say(fmt::format("{}: kvscope {}", trace.name, trace.arguments.front()));
        std::vector<std::string> arguments = trace.arguments;
        arguments.push_back("--output=" + output.string());
        if (fs::exists(output, error)) arguments.emplace_back("--force");
        ChildProcesses children([this](size_t, std::string_view line) { say(std::string(line)); });
        children.start(0, arguments, {}, folder_.log(part));
        const ChildEnd end = children.wait(stop_);
        folder_.write_attempt(part, {trace.arguments, {}, end.exit_code, end.reason, 0, end.exit_code == 0});
        if (end.exit_code != 0) throw std::runtime_error(end.reason);
    }

    const papers::Paper& paper_;
    const PaperCommands& commands_;
    const SweepFolder& folder_;
    bool quiet_;
    const std::stop_token& stop_;
};

/// @param arguments as "--option=value"
std::string shell_command(const std::vector<std::string>& arguments, const fs::path& output) {
    analysis::ShellCommand command("kvscope " + arguments.front());
    for (size_t i = 1; i < arguments.size(); ++i) {
        const size_t equals = arguments[i].find('=');
        if (equals == std::string::npos)
            command.add(arguments[i]);
        else
            command.add(arguments[i].substr(0, equals), arguments[i].substr(equals + 1));
    }
    command.add_path("-o", output);
    return command.text();
}

std::vector<std::string> commands_of(const papers::Paper& paper, const PaperCommands& commands) {
    std::vector<std::string> all;
    const auto add = [&](const std::string& name, const auto& make) {
        try {
            all.push_back(make());
        } catch (const std::exception& error) {
            all.push_back(fmt::format("# {}: {}", name, error.what()));
        }
    };
    for (const papers::Preparation& one : paper.preparations)
        add(one.name,
            [&] { return shell_command(commands.preparation(one), papers::prepared_file(one, commands.folder())); });
    for (const papers::PaperTrace& trace : paper.traces)
        add(trace.name,
            [&] { return shell_command(commands.trace(trace).arguments, commands.folder() / (trace.name + ".h5")); });
    return all;
}

std::string own_command(const Arguments& arguments) {
    analysis::ShellCommand command("kvscope reproduce");
    command.add_path(arguments.paper);
    const PaperSettings& settings = arguments.settings;
    if (settings.is_fast) command.add("--fast");
    if (!settings.model.empty()) command.add_path("--model", settings.model);
    if (!settings.device.empty()) command.add("--device", settings.device);
    if (settings.same_window > 0) command.add("--same-window", std::to_string(settings.same_window));
    if (!settings.text.empty()) command.add_path("--text", settings.text);
    if (!settings.data.empty()) command.add_path("--data", settings.data);
    command.add_path("-o", arguments.folder);
    return command.text();
}

/// Returns the model of the first trace that exists, and the amount of data.
std::vector<std::pair<std::string, std::string>> conditions_of(const papers::Paper& paper, const Arguments& arguments,
                                                               const std::map<std::string, std::string>& missing) {
    std::vector<std::pair<std::string, std::string>> conditions = {
        {"Program", std::string("kvscope ") + program::version()}};
    for (const papers::PaperTrace& trace : paper.traces) {
        if (missing.contains(trace.name)) continue;
        const trace::Reader reader(arguments.folder / (trace.name + ".h5"));
        conditions.emplace_back("Model", analysis::model_in_words(reader.model()));
        break;
    }
    if (arguments.settings.same_window > 0)
        conditions.emplace_back("Window", fmt::format("{} queries for all policies that do not set another",
                                                      arguments.settings.same_window));
    conditions.emplace_back("Prompts", arguments.settings.text.empty() ? "passages of the installed English prose"
                                                                       : arguments.settings.text.string());
    conditions.emplace_back("Amount", arguments.settings.is_fast
                                          ? "--fast: fewer prompts and budgets than without this option"
                                          : "all prompts and budgets");
    return conditions;
}

analysis::Table table_of_items(const papers::Reproduction& reproduction) {
    analysis::Table table{
        "reproduction",
        "Items of " + reproduction.paper->name,
        {{"item", "Item", ""}, {"shows", "Shows", ""}, {"state", "State", ""}, {"findings", "Findings", ""}},
        {}};
    for (const papers::ReproducedItem& made : reproduction.items)
        table.rows.push_back({{made.item->id, made.item->shows, made.nothing.empty() ? "made" : "not made",
                               papers::in_words(papers::count(made.findings))}});
    return table;
}

/// @throws std::invalid_argument if --text or --data names nothing that exists
void check_paths(const PaperSettings& settings) {
    std::error_code error;
    if (!settings.text.empty() && !fs::exists(settings.text, error))
        throw std::invalid_argument(fmt::format("--text: {} does not exist", settings.text.string()));
    if (!settings.data.empty() && !fs::is_directory(settings.data, error))
        throw std::invalid_argument(fmt::format("--data: {} is not a folder", settings.data.string()));
}

int act(Arguments& arguments) {
    check_paths(arguments.settings);
    papers::Paper paper = papers::paper_named(arguments.paper);
    if (arguments.folder.empty()) arguments.folder = paper.name + (arguments.settings.is_fast ? "-fast" : "");
    for (papers::PaperItem& item : paper.items) {
        if (!item.figure.empty()) (void)papers::figure_options(item);  // reports errors before the traces are made
        item = papers::with_prepared_files(std::move(item), paper, arguments.folder);
        if (arguments.settings.same_window > 0)
            item = papers::with_same_window(std::move(item), arguments.settings.same_window);
    }
    const SweepFolder folder(arguments.folder);
    const PaperCommands commands(paper, arguments.settings, arguments.folder);
    StopSignals signals;
    signals.set_last_words("stopped; finished runs are kept, and the same command continues");
    try {
        const ReproductionFolder reserved(arguments.folder);
        folder.create();
        const auto stop = signals.stop_token();
        const auto missing = TraceMaker(paper, commands, folder, arguments.quiet, stop).make_all();
        papers::Reproduction reproduction;
        reproduction.paper = &paper;
        reproduction.command = own_command(arguments);
        reproduction.conditions = conditions_of(paper, arguments, missing);
        create_output_folder(arguments.folder / "figures");
        reproduction.items = reproduce_items(paper, commands, folder, missing, arguments.quiet, stop);
        reproduction.commands_of_traces = commands_of(paper, commands);
        write_whole_file(arguments.folder / page_name, papers::page_of(reproduction), true);
        write_whole_file(arguments.folder / findings_name,
                         analysis::format_table(papers::table_of_findings(reproduction), analysis::TableFormat::csv),
                         true);
        if (!arguments.quiet)
            print_data(
                analysis::format_table(table_of_items(reproduction), analysis::TableFormat::text, terminal_width()));
        print_to_stderr(fmt::format("kvscope: wrote {}", (arguments.folder / page_name).string()));
        const bool failed = std::ranges::any_of(paper.traces, [&](const papers::PaperTrace& trace) {
            return missing.contains(trace.name) && trace.data.empty();
        });
        return failed ? 1 : 0;
    } catch (const Stopped&) {
        throw std::runtime_error("stopped; finished runs are kept, and the same command continues");
    }
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    PaperSettings& settings = arguments->settings;
    app.add_option("paper", arguments->paper, "ApertureKV, K-VEC, DapQ, EchoKV, KVSlimmer, or a YAML file like theirs")
        ->required()
        ->type_name("PAPER");
    app.add_option("-o,--output", arguments->folder,
                   "Folder for traces, figures, tables and the page index.html (default: the paper's name)")
        ->type_name("FOLDER");
    app.add_flag("--fast", settings.is_fast,
                 "Use fewer prompts, lengths and budgets: at most 15 minutes on two cores with the default model");
    app.add_option(
           "-m,--model", settings.model,
           "GGUF file, Hugging Face directory, or id of a model in the local hub cache (default: the installed model)")
        ->type_name("MODEL");
    app.add_option("--device", settings.device, "Device of the model, as for `kvscope run`")->type_name("DEVICE");
    app.add_option("--same-window", settings.same_window,
                   "Window of all policies that do not set one, instead of their different defaults")
        ->check(WholeNumber(1))
        ->type_name("W");
    app.add_option(
           "--text", settings.text,
           "Text that is divided into prompts of 4,000 bytes, or a folder with one prompt per file (default: the "
           "installed English prose)")
        ->type_name("FILE|FOLDER");
    app.add_option("--data", settings.data,
                   "Folder with the data of benchmarks; each item that needs data names its subfolder")
        ->type_name("FOLDER");
    app.add_flag("-q,--quiet", arguments->quiet, "Hide progress and the table of items");
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::reproduce_file

namespace kvscope::cli {

Command reproduce_command() {
    using namespace reproduce_file;
    return {"reproduce", "Make the figures and tables of a paper, and check which of its findings hold",
            "  kvscope reproduce K-VEC --fast\n"
            "  kvscope reproduce ApertureKV -m Qwen/Qwen2.5-0.5B-Instruct -o aperturekv\n"
            "  kvscope reproduce K-VEC --data benchmarks   # continues, and adds the items that need data",
            declare};
}

}  // namespace kvscope::cli
