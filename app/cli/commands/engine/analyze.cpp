#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/model_in_words.h"
#include "analysis/pseudo_queries.h"
#include "app/cli/command.h"
#include "app/cli/engine/measure_queries.h"
#include "app/cli/engine/model_options.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/option_checks.h"
#include "app/cli/output_option.h"
#include "app/figures/export_figure.h"
#include "app/program/paths.h"
#include "app/program/version.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/error.h"
#include "engine/spectra.h"

namespace kvscope::cli::analyze_file {
namespace {

/// How many of the largest eigenvalues hold a share of their sum.
int64_t modes_holding(std::span<const float> eigenvalues, double share) {
    double total = 0;
    for (const float value : eigenvalues) total += value;
    double held = 0;
    int64_t n = 0;
    while (n < static_cast<int64_t>(eigenvalues.size()) && held < share * total)
        held += eigenvalues[static_cast<size_t>(n++)];
    return n;
}

analysis::Table spectra_of(const ModelOptions& model, engine::Progress& progress) {
    model.set_threads();
    const auto checkpoint = checkpoint::open_checkpoint(model.path());
    const auto& config = checkpoint->config();
    trace::ModelRecord record;
    engine::add_spectra(*checkpoint, checkpoint->fingerprint(), record, progress);
    using analysis::ColumnType;
    analysis::Table table{"spectra",
                          "Spectra of the projections of " + config.name,
                          {{"layer", "Layer", "", ColumnType::integer},
                           {"projection", "Projection", ""},
                           {"largest", "Largest eigenvalue", "", ColumnType::real},
                           {"sum", "Sum", "", ColumnType::real},
                           {"modes_50", "Modes holding 50 %", "", ColumnType::integer},
                           {"modes_90", "Modes holding 90 %", "", ColumnType::integer},
                           {"modes_99", "Modes holding 99 %", "", ColumnType::integer},
                           {"modes", "Modes", "", ColumnType::integer}},
                          {}};
    const auto hidden = static_cast<size_t>(config.hidden_size);
    struct Part {
        const char* name;
        const std::vector<float>& values;
        int n_heads;
    };
    const Part parts[] = {{"q", record.spectrum_q, config.n_heads},
                          {"k", record.spectrum_k, config.n_kv_heads},
                          {"v", record.spectrum_v, config.n_kv_heads}};
    for (int layer = 0; layer < config.n_layers; ++layer) {
        for (const auto& [name, values, n_heads] : parts) {
            // W has no more modes than outputs: the rest of the recorded eigenvalues of its WᵀW are zeros.
            const auto n_modes = std::min(hidden, static_cast<size_t>(n_heads * config.head_dim));
            const auto row = std::span<const float>(values).subspan(static_cast<size_t>(layer) * hidden, n_modes);
            double sum = 0;
            for (const float value : row) sum += value;
            table.rows.push_back({{int64_t{layer}, std::string(name), double{row[0]}, sum, modes_holding(row, 0.5),
                                   modes_holding(row, 0.9), modes_holding(row, 0.99), static_cast<int64_t>(n_modes)}});
        }
    }
    return table;
}

struct Arguments {
    ModelOptions model;
    OutputFormat format;
    bool quiet = false;
    bool queries = false;
    std::string prompt;
    std::vector<std::string> prompt_files;
    std::string question;
    MeasureQueriesOptions options;
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
        texts.push_back(
            {std::filesystem::path(file).stem().string(), program::read_text(file), program::name_of_text(file)});
    if (texts.empty())
        throw std::invalid_argument(
            "there is no prompt whose answer pseudo tokens are held against: give a text with "
            "-p or a file with -f");
    const auto model = arguments.model.open(progress);
    std::vector<engine::Prompt> prompts;
    for (const auto& [name, text, origin] : texts)
        prompts.push_back(engine::prepare_prompt(model, text, arguments.question,
                                                 {.name = name,
                                                  .use_template = arguments.model.use_template(),
                                                  .n_new = arguments.options.n_answer,
                                                  .origin = origin}));
    MeasuredQueries measured;
    try {
        measured.all = measure_queries(model, prompts, arguments.options, progress);
    } catch (const engine::Cancelled&) {
        throw std::runtime_error("stopped; nothing was written");
    }
    measured.recipe = {{"Software", std::string("kvscope ") + program::version()},
                       {"Model", analysis::model_in_words(model.attributes())}};
    for (const auto& prompt : prompts)
        measured.recipe.emplace_back("Prompt", fmt::format("{}, {} tokens", prompt.name, prompt.ids.size()));
    if (!arguments.question.empty()) measured.recipe.emplace_back("Question", arguments.question);
    measured.recipe.emplace_back("Draws",
                                 fmt::format("{} trials, seed {}", arguments.options.n_trials, arguments.options.seed));
    return measured;
}

/// Nothing is measured for a file that cannot be written.
void export_queries(const Arguments& arguments, engine::Progress& progress) {
    figures::Exported what;
    what.figure = [&] {
        auto [all, recipe] = queries_of(arguments, progress);
        auto figure = analysis::pseudo_query_figure(all);
        figure.recipe = std::move(recipe);
        return figure;
    };
    what.numbers = [&] { return analysis::pseudo_query_table(queries_of(arguments, progress).all); };
    figures::export_figure(what, arguments.output, {.creator = std::string("kvscope ") + program::version()},
                           arguments.force);
}

std::function<int()> declare(CLI::App& app) {
    constexpr int most_draws = 100000;
    const auto arguments = std::make_shared<Arguments>();
    auto& options = arguments->options;
    arguments->model.declare_model(app, ModelOptions::As::both);
    arguments->model.declare_threads(app);
    auto* queries =
        app.add_flag("--queries", arguments->queries,
                     "Cosine of pseudo tokens' queries with those of a prompt's true answer, by content and "
                     "position (DapQ, Table 1), instead of the spectra");
    std::vector<CLI::Option*> of_queries = arguments->model.declare_chat_template(app);
    app.add_option("-o,--output", arguments->output,
                   "Draw it into this file (pdf, svg, png) or write its numbers (csv, md, tex, json, jsonl): of "
                   "--queries alone")
        ->type_name("FILE");
    of_queries.push_back(arguments->model.declare_dtype(app));
    of_queries.push_back(arguments->model.declare_device(app));
    of_queries.insert(
        of_queries.end(),
        {app.add_option("-p,--prompt", arguments->prompt, "Text of the prompt")->type_name("TEXT"),
         app.add_option("-f,--prompt-file,--file", arguments->prompt_files,
                        "File with the prompt, - for standard input; repeatable")
             ->type_name("FILE"),
         app.add_option("--question", arguments->question, "Question asked of the prompts")->type_name("TEXT"),
         app.add_option("-n,--n-predict,--predict", options.n_answer,
                        "Tokens of the answer, and pseudo tokens; fewer where the answer ends")
             ->check(WholeNumber(1))
             ->capture_default_str(),
         app.add_option(
                "--trials", options.n_trials,
                "Also tokens drawn from the vocabulary and positions drawn from the prompt's, as often as this, "
                "with the five numbers of a box (Figure 2a has 100)")
             ->check(WholeNumber(0, most_draws)),
         app.add_option("--offsets", options.n_offsets,
                        "Also the answer's own tokens at this many start positions from 0 to the prompt's end (Figure "
                        "2b)")
             ->check(WholeNumber(0, most_draws)),
         app.add_option("-s,--seed", options.seed, "Seed of whatever is drawn")->capture_default_str(),
         app.add_flag("--force", arguments->force, "Replace an existing file")});
    for (auto* option : of_queries) option->needs(queries);
    app.add_flag("-q,--quiet", arguments->quiet, "No progress");
    arguments->format.declare(app);
    app.get_option("--output")->excludes(app.get_option("--format"));
    return [arguments] {
        if (!arguments->output.empty() && !arguments->queries)
            throw std::invalid_argument(
                "--output is of --queries: spectra are drawn from a trace of the model, by `kvscope export TRACE.h5 "
                "--figure spectrum -o FILE`, and printed by --format");
        TerminalProgress progress(arguments->quiet);
        if (!arguments->output.empty()) {
            export_queries(*arguments, progress);
        } else {
            arguments->format.print(arguments->queries
                                        ? analysis::pseudo_query_table(queries_of(*arguments, progress).all)
                                        : spectra_of(arguments->model, progress));
        }
        return 0;
    };
}

}  // namespace
}  // namespace kvscope::cli::analyze_file

namespace kvscope::cli {

Command analyze_command() {
    using namespace analyze_file;
    return {"analyze", "Spectra of a model's projections, or how far queries depend on content and position",
            "  kvscope analyze\n  kvscope analyze model.gguf --format csv\n"
            "  kvscope analyze --queries -f report.txt --question \"Who signed it?\" --trials 100 --offsets 20\n"
            "  kvscope analyze --queries -f report.txt --trials 100 --offsets 9 -o queries.pdf",
            declare};
}

}  // namespace kvscope::cli
