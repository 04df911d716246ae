#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <type_traits>

#include "analysis/drawing/figure_definition.h"
#include "analysis/figures_of_several_traces.h"
#include "analysis/ranking.h"
#include "analysis/runs/rename_runs.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "app/cli/command.h"
#include "app/cli/export_parts.h"
#include "app/cli/export_results.h"
#include "app/cli/figures_text.h"
#include "app/cli/option_validators.h"
#include "app/cli/own_options.h"
#include "app/cli/prompt_numbers.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"
#include "app/figures/export_figure.h"
#include "app/papers/item_figure.h"
#include "app/papers/paper.h"
#include "app/program/number_list.h"
#include "app/program/version.h"
#include "trace/reader.h"

namespace kvscope::cli::export_file {
namespace {

namespace fs = std::filesystem;

constexpr const char* all_figures = "all";

struct Arguments {
    std::vector<fs::path> traces;
    std::vector<std::string> figures;
    std::string ranking;
    std::string program;  ///< whose result files are written
    std::vector<std::string> runs;
    std::vector<std::string> renames;
    std::string layers;
    std::string heads;
    std::string tokens;
    bool difference = false;
    analysis::FigureOptions options;
    figures::ExportOptions file;
    fs::path output;
    bool force = false;
    std::optional<papers::PaperItem> item;  ///< of a paper, if --figure names one
    size_t top = 0;                         ///< number of rows of a ranking; 0 for all
    OutputFormat format;
    const CLI::Option* prompt = nullptr;
    std::string prompt_text = "0";
    std::vector<int> prompts;                     ///< number of the chosen prompt in each trace
    std::vector<const CLI::Option*> of_pictures;  ///< options without effect on tables
    std::vector<const CLI::Option*> of_figures;   ///< options without effect on rankings
    std::vector<const CLI::Option*> of_rankings;  ///< options without effect on figures

    bool to_file() const { return !output.empty() && output != "-"; }
    bool is_for_people() const {
        const std::string extension = output.extension().string();
        return to_file() ? extension == ".md" || extension == ".tex" || extension == ".html" : format.is_for_people();
    }
    bool are_all() const { return std::find(figures.begin(), figures.end(), all_figures) != figures.end(); }
};

std::vector<const analysis::FigureDefinition*> chosen_figures(const Arguments& arguments) {
    std::vector<const analysis::FigureDefinition*> chosen;
    const auto add = [&](const analysis::FigureDefinition& definition) {
        if (std::find(chosen.begin(), chosen.end(), &definition) == chosen.end()) chosen.push_back(&definition);
    };
    if (!arguments.ranking.empty()) add(analysis::ranking_definition(arguments.ranking));
    for (const auto& name : arguments.figures) {
        if (name != all_figures) add(analysis::figure_definition(name));
    }
    if (arguments.are_all()) {
        for (const auto& definition : analysis::figure_definitions()) add(definition);
    }
    return chosen;
}

bool is_ranking(const analysis::FigureDefinition* definition) { return !definition->has_drawing(); }

/// Whether the export is one ranking on standard output.
bool is_printed(const Arguments& arguments, const std::vector<const analysis::FigureDefinition*>& definitions) {
    return definitions.size() == 1 && is_ranking(definitions.front()) && !arguments.to_file();
}

/// Checks --csv-safe, and that the format suits the definitions.
void check_format(const Arguments& arguments, const std::vector<const analysis::FigureDefinition*>& definitions) {
    const std::string name = arguments.output.filename().string();
    const auto& format = figures::figure_format_for(name);
    if (arguments.format.is_csv_safe() && format.extension != "csv")
        throw analysis::FigureError(
            fmt::format("--csv-safe applies to CSV only, but {} is a .{} file: give -o a name that ends in .csv", name,
                        format.extension));
    if (format.is_picture && is_ranking(definitions.front())) {
        std::vector<std::string_view> tables;
        for (const auto& other : figures::figure_formats())
            if (!other.is_picture) tables.push_back(other.extension);
        throw analysis::FigureError(fmt::format("a ranking is a table, but .{} is an image format; use one of {}",
                                                format.extension, fmt::join(tables, ", ")));
    }
    for (const CLI::Option* option : arguments.of_pictures) {
        if (format.draws || option->count() == 0) continue;
        throw analysis::FigureError(fmt::format("{} applies to images only, but a .{} file contains numbers",
                                                option->get_name(), format.extension));
    }
}

/// Checks that each named figure supports every option. For `all`, at least one figure must support the option.
void check_arguments(const Arguments& arguments, const std::vector<const analysis::FigureDefinition*>& definitions) {
    const auto& options = arguments.options;
    if (!arguments.are_all()) {
        for (const auto* definition : definitions) {
            analysis::check_options(*definition, options);
            const bool is_of_all_prompts = definition->is_of_prompt && !definition->is_of_prompt(options);
            if (is_of_all_prompts && arguments.prompt->count() > 0)
                throw analysis::FigureError(fmt::format("{} does not use --prompt; it uses {}", definition->name,
                                                        analysis::options_in_words(definition->options)));
        }
    } else if (!options.source.empty() &&
               std::all_of(definitions.begin(), definitions.end(), [&](const auto* definition) {
                   return analysis::options_used_by_figure(*definition, options).source.empty();
               })) {
        throw analysis::FigureError(fmt::format(
            "no figure has a source '{}'; `kvscope figures` lists the sources of each figure", options.source));
    }
    if (is_ranking(definitions.front()) && arguments.traces.size() != 1)
        throw analysis::FigureError(fmt::format("a ranking needs one trace, found {}", arguments.traces.size()));
    if (!is_printed(arguments, definitions)) check_format(arguments, definitions);
}

void check_traces(const std::vector<fs::path>& traces) {
    for (size_t i = 0; i < traces.size(); ++i)
        for (size_t other = 0; other < i; ++other) {
            std::error_code missing;
            if (fs::equivalent(traces[i], traces[other], missing))
                throw analysis::FigureError(fmt::format("{} and {} are the same trace: give only one path",
                                                        traces[other].string(), traces[i].string()));
        }
}

/// Checks that at least one of the traces has the chosen runs. The figures of the other traces omit them.
void require_known_runs(const std::vector<trace::Reader>& readers, const std::vector<int>& prompts,
                        analysis::FigureOptions options) {
    std::exception_ptr failure;
    for (size_t i = 0; i < readers.size(); ++i) {
        const trace::Reader& reader = readers[i];
        options.prompt = prompts[i];
        if (!reader.result_tasks().empty()) return;  // figures of scores choose their own runs
        if (reader.n_prompts() == 0) continue;
        try {
            analysis::chosen_runs(reader, options);
            return;
        } catch (...) {
            if (!failure) failure = std::current_exception();
        }
    }
    if (failure) std::rethrow_exception(failure);
}

/// Checks prompt, layers, heads and runs. Without this check, `all` would omit figures instead of reporting an error.
void check_ranges(const std::vector<trace::Reader>& readers, const std::vector<int>& prompts,
                  const analysis::FigureOptions& options,
                  const std::vector<const analysis::FigureDefinition*>& definitions) {
    for (size_t i = 0; i < readers.size(); ++i) {
        const trace::Reader& reader = readers[i];
        if (reader.n_prompts() == 0) continue;
        analysis::check_prompt(reader, prompts[i]);
        analysis::chosen_layers(reader, options);
        analysis::chosen_heads(reader, options);
    }
    const bool name_settings =
        std::ranges::all_of(definitions, [](const auto* definition) { return definition->runs_are_settings; });
    if (!options.runs.empty() && !name_settings) require_known_runs(readers, prompts, options);
}

class FigureOfTraces {
 public:
    FigureOfTraces(const Arguments& arguments, const std::vector<trace::Reader>& readers,
                   const analysis::FigureDefinition& definition)
        : arguments_(&arguments), definition_(&definition), is_difference_(arguments.difference) {
        // The figure `difference` itself subtracts two runs of one trace.
        if (readers.size() == 1 && analysis::compares_two_runs(definition)) is_difference_ = false;
        const auto options =
            arguments.are_all() ? analysis::options_used_by_figure(definition, arguments.options) : arguments.options;
        const bool of_two_runs = is_difference_ && readers.size() == 1;
        if (of_two_runs && options.runs.empty() && !arguments.options.runs.empty()) {
            nothing_ = "the figure does not depend on the run";
            return;
        }
        const ExportedTraces traces{readers, arguments.traces, arguments.prompts};
        parts_ = is_difference_ ? parts_of_difference(traces, options) : parts_of_traces(traces, options);
    }

    figures::Exported exported() const {
        figures::Exported exported{nullptr, [*this] { return left_out_of_all([&] { return numbers(); }); },
                                   [*this] { left_out_of_all([&] { check(); }); }};
        if (definition_->has_drawing()) exported.figure = [*this] { return left_out_of_all([&] { return figure(); }); };
        return exported;
    }

 private:
    template <class Make>
    std::invoke_result_t<Make> left_out_of_all(const Make& make) const {
        try {
            return make();
        } catch (const analysis::FigureError& error) {
            if (!arguments_->are_all()) throw;
            throw analysis::NothingToShow(error.what());
        }
    }

    analysis::Figure figure() const {
        return is_difference_ ? analysis::make_difference(*definition_, parts_[0], parts_[1])
                              : analysis::make_figure(*definition_, parts_);
    }

    analysis::Table numbers() const {
        if (is_difference_) return analysis::difference_numbers(*definition_, parts_[0], parts_[1]);
        analysis::Table table = analysis::make_numbers(*definition_, parts_);
        if (definition_->has_drawing()) return table;
        if (arguments_->top > 0 && arguments_->top < table.rows.size()) table.rows.resize(arguments_->top);
        return arguments_->is_for_people() ? analysis::make_white_space_visible(std::move(table)) : table;
    }

    /// Checks the figure, then prints which runs were chosen by default and which are omitted.
    void check() const {
        if (!nothing_.empty()) throw analysis::NothingToShow(nothing_);
        if (is_difference_) {
            analysis::check_difference(*definition_, parts_[0], parts_[1]);
            if (const std::string runs = analysis::unpaired_runs(*definition_, parts_[0], parts_[1]); !runs.empty())
                print_to_stderr(fmt::format("kvscope: {} omits runs without a counterpart in the other trace: {}",
                                            definition_->name, runs));
            if (const std::string unlike = analysis::prompt_difference(*definition_, parts_[0], parts_[1]);
                !unlike.empty())
                print_to_stderr(fmt::format("kvscope: {} subtracts different prompts: {}", definition_->name, unlike));
            return;
        }
        analysis::check_figure(*definition_, parts_);
        for (const auto& part : parts_) {
            const std::string lacks = analysis::why_no_figure(*definition_, *part.reader, part.options);
            if (lacks.empty())
                say_what_is_shown(part);
            else
                print_to_stderr(fmt::format("kvscope: {} omits {}: {}", definition_->name, part.name, lacks));
        }
    }

    void say_what_is_shown(const analysis::TracePart& part) const {
        const std::string of = part.name.empty() ? "" : part.name + ": ";
        const auto said = [&](std::string (*what)(const trace::Reader&, const analysis::FigureOptions&)) {
            return what ? what(*part.reader, part.options) : std::string();
        };
        if (const std::string choice = said(definition_->own_choice); !choice.empty())
            print_to_stderr(fmt::format("kvscope: {} shows {}{}; choose with --run", definition_->name, of, choice));
        if (const std::string labels = said(definition_->left_out); !labels.empty())
            print_to_stderr(fmt::format("kvscope: {} omits {}{}", definition_->name, of, labels));
    }

    const Arguments* arguments_;
    const analysis::FigureDefinition* definition_;
    std::vector<analysis::TracePart> parts_;
    bool is_difference_;
    std::string nothing_;
};

std::string joined(const std::vector<fs::path>& paths) {
    std::string text;
    for (const auto& path : paths) text += (text.empty() ? "" : ", ") + path.string();
    return text;
}

/// Prints which runs a ranking compares.
void name_pair(const trace::Reader& reader, const analysis::FigureOptions& options) {
    const auto runs = analysis::compared_runs(reader, options);
    const auto named = [&](int run) {
        return fmt::format("run {}, {}", run, one_line(analysis::run_label(reader.run(options.prompt, run))));
    };
    print_to_stderr(fmt::format("kvscope: A is {}; B is {}", named(runs[0]), named(runs[1])));
}

void export_one(const Arguments& arguments, const std::vector<trace::Reader>& readers,
                const analysis::FigureDefinition& definition) {
    const figures::Exported exported = FigureOfTraces(arguments, readers, definition).exported();
    if (definition.has_drawing() || arguments.to_file()) {
        const auto written = figures::export_figure(exported, arguments.output, arguments.file, arguments.force);
        if (written.size() > 1)
            print_to_stderr(
                fmt::format("kvscope: {} has {} pages: {}", definition.name, written.size(), joined(written)));
    } else {
        arguments.format.print(exported.numbers());
    }
    if (!definition.has_drawing() && analysis::compares_two_runs(definition))
        name_pair(readers.front(), arguments.options);
}

/// Prints to stderr that the first prompt is shown, if the user chose none and a figure depends on the prompt.
void say_prompts(const Arguments& arguments, const std::vector<trace::Reader>& readers,
                 const std::vector<const analysis::FigureDefinition*>& definitions) {
    const bool is_any_of_prompt = std::any_of(definitions.begin(), definitions.end(), [&](const auto* definition) {
        return !definition->is_of_prompt ||
               definition->is_of_prompt(analysis::options_used_by_figure(*definition, arguments.options));
    });
    if (!is_any_of_prompt || arguments.prompt->count() > 0) return;
    for (const auto& reader : readers) {
        if (reader.n_prompts() < 2) continue;
        print_to_stderr(fmt::format("kvscope: {}: shows prompt 0 ('{}'), the first of {}; choose with --prompt",
                                    reader.path().string(), one_line(reader.prompt(0).name), reader.n_prompts()));
    }
}

int export_several(const Arguments& arguments, const std::vector<trace::Reader>& readers,
                   const std::vector<const analysis::FigureDefinition*>& definitions) {
    const auto exported = figures::export_figures(
        definitions,
        [&](const analysis::FigureDefinition& definition) {
            return FigureOfTraces(arguments, readers, definition).exported();
        },
        {arguments.output}, arguments.file, arguments.force);
    if (!exported.written.empty()) print_to_stderr(fmt::format("kvscope: wrote {}", joined(exported.written)));
    for (const auto& [figure, reason] : exported.left_out)
        print_to_stderr(fmt::format("kvscope: omitted: {}: {}", figure, reason));
    for (const auto& [figure, reason] : exported.failed)
        print_to_stderr(fmt::format("kvscope: failed: {}: {}", figure, reason));
    if (exported.written.empty()) throw std::runtime_error("nothing could be exported; see the reasons above");
    return exported.failed.empty() ? 0 : 1;
}

/// Checks that all definitions are figures, or all are rankings, and that the options apply to them.
void check_kind(const Arguments& arguments, const std::vector<const analysis::FigureDefinition*>& definitions) {
    const bool are_rankings = is_ranking(definitions.front());
    if (!std::all_of(definitions.begin(), definitions.end(),
                     [&](const auto* definition) { return is_ranking(definition) == are_rankings; }))
        throw analysis::FigureError("figures and rankings cannot be exported together: export one, then the other");
    for (const CLI::Option* option : are_rankings ? arguments.of_figures : arguments.of_rankings) {
        if (option->count() == 0) continue;
        throw analysis::FigureError(
            fmt::format("{} applies to {}", option->get_name(),
                        are_rankings ? "figures, not to rankings" : "rankings, not to figures"));
    }
    if (are_rankings && arguments.to_file() && arguments.of_rankings.front()->count() > 0)
        throw analysis::FigureError(
            fmt::format("--format applies to standard output; the format of {} follows from its extension",
                        arguments.output.filename().string()));
    if (arguments.output.empty() && !is_printed(arguments, definitions))
        throw analysis::FigureError("-o FILE is missing: name the output file, whose extension sets the format");
}

/// Declares the options that only some figures or rankings have. The help lists an option's meaning in each of them.
void declare_own_options(CLI::App& app, Arguments& arguments) {
    for (const auto& [name, own] : own_options()) {
        const auto take = [&arguments, name = name](const std::string& text) { arguments.options.own[name] = text; };
        auto* option = app.add_option_function<std::string>("--" + name, take, own.help());
        suggest(option, choices_in_figures(name));
        if (own.n_rankings == 0) arguments.of_figures.push_back(option);
        if (own.n_figures == 0) arguments.of_rankings.push_back(option);
    }
}

/// @throws FigureError for an option other than those of --results
void check_options_of_results(const CLI::App& app, const Arguments& arguments) {
    if (arguments.output.empty())
        throw analysis::FigureError("-o FOLDER is missing: name the folder for the files of " + arguments.program);
    const std::set<std::string> used = {"trace", "--results", "--output", "--force"};
    for (const CLI::Option* option : app.get_options())
        if (option->count() > 0 && !used.contains(option->get_name()))
            throw analysis::FigureError(
                fmt::format("--results writes all results; {} applies to figures and rankings", option->get_name()));
}

/// Replaces "K-VEC:F4" by the figure, options and labels of this item. Options on the command line take precedence.
void apply_paper_item(Arguments& arguments) {
    if (std::ranges::none_of(arguments.figures, papers::is_item_name)) return;
    if (arguments.figures.size() > 1)
        throw analysis::FigureError("an item of a paper is exported alone: give --figure once");
    const papers::PaperItem& found = papers::item_named(arguments.figures.front());
    const papers::PaperItem item =
        papers::with_prepared_files(found, papers::paper_named(found.source), arguments.traces.front().parent_path());
    if (!item.cannot.empty())
        throw analysis::FigureError(fmt::format("{} cannot be made: {}", item.full_id(), item.cannot));
    if (item.figure.empty())
        throw analysis::FigureError(fmt::format("{} is drawn without a trace: {}", item.full_id(),
                                                papers::command_of_item(item, {}, arguments.output)));
    arguments.options = papers::with_options_of_item(std::move(arguments.options), item);
    if (arguments.prompt->count() == 0) arguments.prompt_text = std::to_string(papers::figure_options(item).prompt);
    const bool is_figure = analysis::figure_definition(item.figure).has_drawing();
    arguments.figures.clear();
    (is_figure ? arguments.figures.emplace_back() : arguments.ranking) = item.figure;
    arguments.item = item;
}

/// Adds to an error that the trace lacks data which command makes a trace for the item.
[[noreturn]] void explain_lack(const papers::PaperItem& item, const std::string& why) {
    throw analysis::NothingToShow(
        fmt::format("{}: {}. `kvscope reproduce {}` makes a trace for this item", item.full_id(), why, item.source));
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    app.add_option(
           "trace", arguments->traces,
           "Trace, or .part folder of an unfinished trace; several traces are drawn in one figure with the same scale")
        ->required()
        ->type_name("TRACE.h5");
    std::vector<std::string> figures = defined_names(analysis::figure_definitions());
    figures.emplace_back(all_figures);
    auto* figure = app.add_option(
        "--figure", arguments->figures,
        "Figure to export, as listed by `kvscope figures`; repeatable; `all` for every figure that the trace supports; "
        "DapQ:F5 for an item of a paper");
    suggest(figure->delimiter(',')->allow_extra_args(false), figures);
    suggest(app.add_option("--ranking", arguments->ranking,
                           "Ranking to export, as listed by `kvscope rankings`; printed as a table unless -o is given"),
            defined_names(analysis::ranking_definitions()));
    app.add_option("--results", arguments->program,
                   "Write the results of prompts or tasks as files of another program into the folder -o: kvpress "
                   "(predictions.csv, metrics.json, config.yaml) or lm-eval (results_<time>.json, samples_<task>_<time>"
                   ".jsonl), with one folder per run")
        ->transform(OneOf(programs_with_result_files()))
        ->type_name("PROGRAM");
    const auto* tokens =
        app.add_option("--token,--tokens", arguments->tokens, "First and last token of a ranking, as in 100-220");
    const auto* top =
        app.add_option("--top", arguments->top, "Number of rows to write, from the top of a ranking (default: all)")
            ->check(WholeNumber(1));
    arguments->format.declare(app);
    arguments->of_rankings = {app.get_option("--format")->description("Format of a ranking on standard output"), tokens,
                              top};
    app.add_option("-o,--output", arguments->output,
                   "Output file; the extension sets the format: pdf, svg, png, csv, md, tex, html, json, jsonl. "
                   "Several figures, and "
                   "several pages as svg or png, are written to separate files, such as demo-jsd.pdf for demo.pdf")
        ->type_name("FILE");
    arguments->prompt = app.add_option("--prompt", arguments->prompt_text, "Prompt, by number from 0, or by name")
                            ->type_name("PROMPT")
                            ->capture_default_str();
    app.add_option("--run,--runs", arguments->runs,
                   "Run, by label or policy, or for a figure of one prompt by number; repeatable")
        ->allow_extra_args(false);
    app.add_option("--rename", arguments->renames,
                   "LABEL=NEW LABEL: new label of a run in figures and rankings; a policy in place of LABEL, as in "
                   "k-vec=K-VEC, renames all runs of the policy; repeatable. The recipe keeps the original label")
        ->allow_extra_args(false);
    app.add_option("--layer,--layers", arguments->layers, "Layers, as in 0,5,10-12");
    const auto* heads = app.add_option("--head,--heads", arguments->heads, "Query heads, as in 0,5-7");
    auto* columns =
        app.add_option("--column,--columns", arguments->options.columns,
                       "For cost: columns of the table of runs for the x and y axes; repeatable. For results-table: "
                       "setting of the columns")
            ->delimiter(',')
            ->allow_extra_args(false);
    auto* source =
        app.add_option("--source", arguments->options.source, "Measure to show, for figures with several measures");
    suggest(columns, choices_in_figures("columns"));
    suggest(source, choices_in_figures("source"));
    const auto* difference =
        app.add_flag("--difference", arguments->difference,
                     "Subtract the second trace from the first, or the second --run from the first");
    arguments->of_pictures = {
        app.add_flag("--title", arguments->options.title, "Draw a title"),
        app.add_option("--width", arguments->options.width_mm, "Width in mm (default: set by the figure)")
            ->check(RealNumber(30, 2000)),
        app.add_option("--height", arguments->options.height_mm, "Height in mm (default: set by the figure)")
            ->check(RealNumber(1, 2000)),
        app.add_option("--dpi", arguments->file.dpi, "Resolution of a PNG, in dots per inch")->capture_default_str()};
    arguments->of_figures = arguments->of_pictures;
    arguments->of_figures.insert(arguments->of_figures.end(), {heads, columns, source, difference});
    declare_own_options(app, *arguments);
    app.add_flag("--force", arguments->force, "Replace an existing file");
    app.footer(app.get_footer() + "\n\nFigures and their options:\n\n" +
               definitions_text(analysis::figure_definitions()) + "\nRankings and their options:\n\n" +
               definitions_text(analysis::ranking_definitions()));
    return [arguments, &app] {
        if (!arguments->program.empty()) {
            check_options_of_results(app, *arguments);
            return export_results(arguments->traces, arguments->program, arguments->output, arguments->force);
        }
        if (arguments->figures.empty() && arguments->ranking.empty())
            throw analysis::FigureError(
                "nothing to export: give --figure NAME, --ranking NAME or --results PROGRAM; `kvscope figures` and "
                "`kvscope rankings` "
                "list the names");
        arguments->options.runs.assign(arguments->runs.begin(), arguments->runs.end());
        arguments->options.layers = program::number_list(arguments->layers);
        arguments->options.heads = program::number_list(arguments->heads, "heads");
        if (!arguments->tokens.empty()) {
            const auto [first, last] = program::number_range(arguments->tokens, "--tokens");
            arguments->options.tokens = {{first, last}};
        }
        apply_paper_item(*arguments);
        const auto definitions = chosen_figures(*arguments);
        check_kind(*arguments, definitions);
        arguments->file.creator = std::string("kvscope ") + program::version();
        arguments->file.csv_safe = arguments->format.is_csv_safe();
        check_arguments(*arguments, definitions);
        check_traces(arguments->traces);
        std::vector<trace::Reader> readers;
        for (const auto& trace : arguments->traces) readers.emplace_back(trace);
        if (arguments->item && arguments->renames.empty())
            arguments->renames = papers::known_renames(*arguments->item, readers);
        if (!arguments->renames.empty()) {
            arguments->options.setting_labels = analysis::new_labels_of_settings(readers, arguments->renames);
            readers = analysis::rename_runs(readers, arguments->renames);
        }
        arguments->prompts = prompt_numbers(readers, arguments->prompt_text);
        arguments->options.prompt = arguments->prompts.front();
        try {
            check_ranges(readers, arguments->prompts, arguments->options, definitions);
            say_prompts(*arguments, readers, definitions);
            if (definitions.size() > 1) return export_several(*arguments, readers, definitions);
            export_one(*arguments, readers, *definitions.front());
        } catch (const analysis::FigureError& error) {
            if (!arguments->item) throw;
            explain_lack(*arguments->item, error.what());
        } catch (const analysis::NothingToShow& error) {
            if (!arguments->item) throw;
            explain_lack(*arguments->item, error.what());
        }
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::export_file

namespace kvscope::cli {

Command export_command() {
    using namespace export_file;
    return {"export", "Draw a figure of a trace, or write its numbers or a ranking",
            "  kvscope export demo.h5 --figure retention --run snapkv --run aperturekv -o retention.pdf\n"
            "  kvscope export demo.h5 --figure jsd --layer 0,8,16 -o jsd.csv\n"
            "  kvscope export mine.h5 theirs.h5 --figure step-kl --run snapkv -o both.pdf\n"
            "  kvscope export demo.h5 --figure retention --run 3 --run 5 --difference -o difference.pdf\n"
            "  kvscope export demo.h5 --figure all -o demo.pdf\n"
            "  kvscope export demo.h5 --ranking sentences --run 3 --run 5 -o sentences.csv\n"
            "  kvscope export demo.h5 --ranking heads --top 10\n"
            "  kvscope export niah.h5 --results lm-eval -o niah-results",
            declare};
}

}  // namespace kvscope::cli
