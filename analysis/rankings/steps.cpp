#include <fmt/format.h>

#include "analysis/ranking.h"
#include "analysis/runs/answer_byte_ranges.h"
#include "analysis/runs/run_style.h"
#include "analysis/runs/step_divergence.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

/// Returns the tokens of the full run's answer. Every compared run gets this answer as input.
std::vector<std::string> read_tokens(const trace::Reader& reader, int prompt) {
    std::vector<std::string> tokens;
    const auto full = reader.full_run(prompt);
    if (!full || !reader.has(Place::of_run(prompt, *full), schema::run::output_ids)) return tokens;
    const std::string& text = reader.run(prompt, *full).output_text;
    const auto ids = reader.read<int32_t>(Place::of_run(prompt, *full), schema::run::output_ids);
    for (const StepPlace& place : answer_byte_ranges(reader, prompt, text, ids))
        tokens.push_back(text.substr(place.begin, place.end - place.begin));
    return tokens;
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<int> runs = chosen_runs(reader, options);
    const std::vector<std::string> tokens = read_tokens(reader, options.prompt);
    RankingRows rows(SubjectTable(
        "steps", "Decode steps ranked by KL(full || run) of the next token's distribution",
        {SubjectKey::run, label_column(), SubjectKey::step, Column{"token_text", "Token of full", "", ColumnType::text},
         Column{"kl", "KL", "nats", ColumnType::real, 4}, Column{"same_token", "Same token", "", ColumnType::text}}));
    size_t n_compared = 0;
    for (const int run : runs) {
        const auto compared = read_step_divergence(reader, options.prompt, run);
        if (!compared) continue;
        ++n_compared;
        for (size_t step = 0; step < compared->kl.size(); ++step) {
            const auto value = static_cast<double>(compared->kl[step]);
            rows.add({{.run = run, .step = static_cast<int>(step)}}, value,
                     {run_label(reader.run(options.prompt, run)), step < tokens.size() ? Cell(tokens[step]) : Cell(),
                      value, std::string(compared->agreement[step] ? "yes" : "no")});
        }
    }
    if (n_compared == 0)
        throw NothingToShow(
            fmt::format("{}: no chosen run was compared with the full run at each decode step; `kvscope run` compares "
                        "runs if it decodes an answer",
                        reader.path().string()));
    return rows.take();
}

}  // namespace

FigureDefinition steps_figure() {
    return define_ranking<make, chosen_runs>(
        "steps", "Steps that diverge most",
        "Decode steps ranked by their KL divergence from the full run, with the full run's token",
        {{"runs", "runs, by label, policy or number; default: all except full"}});
}

}  // namespace kvscope::analysis
