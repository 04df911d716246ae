#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drawing/pseudo_query_similarity_figure.h"
#include "analysis/runs/model_in_words.h"
#include "app/cli/command.h"
#include "app/cli/engine/measure_query_similarity.h"
#include "app/cli/engine/model_options.h"
#include "app/cli/engine/model_spectra.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/option_validators.h"
#include "app/cli/table_format_option.h"
#include "app/figures/export_figure.h"
#include "app/program/input_files.h"
#include "app/program/version.h"
#include "common/lower_case.h"
#include "common/stopped.h"

namespace kvscope::cli::analyze_file {
namespace {

struct Arguments {
    ModelOptions model;
    OutputFormat format;
    bool quiet = false;
    bool queries = false;
    std::string prompt;
    std::vector<std::string> prompt_files;
    std::string question;
    QuerySimilarityOptions options;
    std::filesystem::path output;
    bool force = false;
};

struct MeasuredQueries {
    std::vector<analysis::PromptQueries> all;
    std::vector<std::pair<std::string, std::string>> recipe;
};

MeasuredQueries queries_of(const Arguments& arguments, engine::Progress& progress) {
    struct Text {
        std::string name, text, origin;
    };
    std::vector<Text> texts;
    if (!arguments.prompt.empty()) texts.push_back({"prompt", arguments.prompt, "-p"});
    for (const auto& file : arguments.prompt_files)
        texts.push_back({std::filesystem::path(file).stem().string(), program::read_prompt(file),
                         program::display_name_of_input(file)});
    if (texts.empty())
        throw std::invalid_argument("no prompt to compare pseudo tokens with: give a text with -p or a file with -f");
    const auto model = arguments.model.open(progress);
    std::vector<engine::Prompt> prompts;
    for (const auto& [name, text, origin] : texts)
        prompts.push_back(engine::tokenize_prompt(model, text, arguments.question,
                                                  {.name = name,
                                                   .use_template = arguments.model.use_template(),
                                                   .n_new = arguments.options.n_answer,
                                                   .origin = origin,
                                                   .parse_special = arguments.model.parse_special(),
                                                   .stop = progress.stop_token()}));
    for (const auto& remark :
         engine::remarks_on_tokens(model, prompts, arguments.model.parse_special(), progress.stop_token()))
        progress.message(remark);
    MeasuredQueries measured;
    measured.all = measure_query_similarity(model, prompts, arguments.options, progress);
    measured.recipe = {{"Software", std::string("kvscope ") + program::version()},
                       {"Model", analysis::model_in_words(model.attributes())}};
    for (const auto& prompt : prompts)
        measured.recipe.emplace_back("Prompt", fmt::format("{}, {} tokens", prompt.name, prompt.ids.size()));
    if (!arguments.question.empty()) measured.recipe.emplace_back("Question", arguments.question);
    measured.recipe.emplace_back("Draws",
                                 fmt::format("{} trials, seed {}", arguments.options.n_trials, arguments.options.seed));
    return measured;
}

figures::Exported exported_queries(const Arguments& arguments, engine::Progress& progress) {
    figures::Exported what;
    what.figure = [&] {
        auto [all, recipe] = queries_of(arguments, progress);
        auto figure = analysis::pseudo_query_figure(all);
        figure.recipe = std::move(recipe);
        return figure;
    };
    what.numbers = [&] { return analysis::pseudo_query_table(queries_of(arguments, progress).all); };
    return what;
}

bool is_trace(const std::filesystem::path& output) {
    const std::string extension = lower_case(output.extension().string());
    return extension == ".h5" || extension == ".hdf5";
}

void write_output(const Arguments& arguments, engine::Progress& progress) {
    const figures::ExportOptions options{.creator = std::string("kvscope ") + program::version()};
    if (arguments.queries) {
        figures::export_figure(exported_queries(arguments, progress), arguments.output, options, arguments.force);
        return;
    }
    arguments.model.set_threads();
    if (is_trace(arguments.output)) {
        ModelSpectra(arguments.model.path(), progress).write_trace(arguments.output, arguments.force);
        return;
    }
    try {
        figures::figure_format_for(arguments.output.string());
    } catch (const figures::FormatError& error) {
        throw std::invalid_argument(fmt::format("{}, or in .h5 for a trace of the model", error.what()));
    }
    figures::Exported what;
    what.figure = [&] { return ModelSpectra(arguments.model.path(), progress).figure(); };
    what.numbers = [&] { return ModelSpectra(arguments.model.path(), progress).table(); };
    figures::export_figure(what, arguments.output, options, arguments.force);
}

analysis::Table table_of(const Arguments& arguments, engine::Progress& progress) {
    if (arguments.queries) return analysis::pseudo_query_table(queries_of(arguments, progress).all);
    arguments.model.set_threads();
    return ModelSpectra(arguments.model.path(), progress).table();
}

std::function<int()> declare(CLI::App& app) {
    constexpr int most_draws = 100000;
    const auto arguments = std::make_shared<Arguments>();
    auto& options = arguments->options;
    arguments->model.declare_model(app, ModelOptions::As::both);
    arguments->model.declare_threads(app);
    auto* queries = app.add_flag("--queries", arguments->queries,
                                 "Measure the cosine similarity between the queries of pseudo tokens and of the answer "
                                 "(DapQ's Table 1) instead of the spectra");
    std::vector<CLI::Option*> of_queries = arguments->model.declare_chat_template(app);
    of_queries.push_back(arguments->model.declare_special(app));
    app.add_option(
           "-o,--output", arguments->output,
           "Output file; its extension sets the format: a figure (pdf, svg, png), a table (csv, md, tex, html, json, "
           "jsonl) or, for spectra, a trace of the model (h5)")
        ->type_name("FILE");
    of_queries.push_back(arguments->model.declare_dtype(app));
    of_queries.push_back(arguments->model.declare_device(app));
    of_queries.insert(
        of_queries.end(),
        {app.add_option("-p,--prompt", arguments->prompt, "Text of the prompt")->type_name("TEXT"),
         app.add_option("-f,--prompt-file,--file", arguments->prompt_files,
                        "Prompt file, - for standard input; repeatable")
             ->type_name("FILE"),
         app.add_option("--question", arguments->question, "Question after each prompt")->type_name("TEXT"),
         app.add_option("-n,--n-predict,--predict", options.n_answer,
                        "Largest number of answer tokens; also sets the number of pseudo tokens")
             ->check(WholeNumber(1))
             ->capture_default_str(),
         app.add_option(
                "--trials", options.n_trials,
                "Number of random draws of tokens and positions, summarized in box plots (100 in DapQ's Figure 2a)")
             ->check(WholeNumber(0, most_draws)),
         app.add_option("--offsets", options.n_offsets,
                        "Number of start positions, from 0 to the prompt's end, at which the answer's tokens are "
                        "measured (DapQ's Figure 2b)")
             ->check(WholeNumber(0, most_draws)),
         app.add_option("-s,--seed", options.seed, "Seed of the random draws")->capture_default_str()});
    for (auto* option : of_queries) option->needs(queries);
    app.add_flag("-q,--quiet", arguments->quiet, "Hide progress");
    arguments->format.declare(app);
    app.get_option("--output")->excludes(app.get_option("--format"));
    app.add_flag("--force", arguments->force, "Replace an existing file")->needs(app.get_option("--output"));
    return [arguments] {
        TerminalProgress progress(arguments->quiet);
        try {
            if (arguments->output.empty())
                arguments->format.print(table_of(*arguments, progress));
            else
                write_output(*arguments, progress);
        } catch (const Stopped&) {
            throw std::runtime_error("stopped; nothing was written");
        }
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::analyze_file

namespace kvscope::cli {

Command analyze_command() {
    using namespace analyze_file;
    return {
        "analyze", "Measure a model's projection spectra, or how queries depend on content and position",
        "  kvscope analyze\n  kvscope analyze model.gguf --format csv\n  kvscope analyze model.gguf -o spectra.pdf\n"
        "  kvscope analyze --queries -f report.txt --question \"Who signed it?\" --trials 100 --offsets 20\n"
        "  kvscope analyze --queries -f report.txt --trials 100 --offsets 9 -o queries.pdf",
        declare};
}

}  // namespace kvscope::cli
