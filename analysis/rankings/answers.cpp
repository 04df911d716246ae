#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/measures/result_row.h"
#include "analysis/ranking.h"
#include "analysis/runs/answer_byte_ranges.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr double threshold_nats = 0.1;
constexpr double most_nats = 100;

struct Answer {
    std::vector<int32_t> ids;  ///< empty if not recorded
    std::string text;
    std::vector<StepPlace> places;

    /// Returns the text that a step wrote, or "(ends)" if the answer has ended.
    std::string at(size_t step) const {
        if (step >= places.size() || places[step].begin == places[step].end) return "(ends)";
        return text.substr(places[step].begin, places[step].end - places[step].begin);
    }
};

Answer read_answer(const trace::Reader& reader, int prompt, int run) {
    const Place place = Place::of_run(prompt, run);
    if (!reader.has(place, schema::run::output_ids)) return {};
    Answer answer{reader.read<int32_t>(place, schema::run::output_ids), reader.run(prompt, run).output_text, {}};
    answer.places = answer_byte_ranges(reader, prompt, answer.text, answer.ids);
    return answer;
}

Answer read_full_answer(const trace::Reader& reader, int prompt) {
    const auto full = reader.full_run(prompt);
    Answer answer = full ? read_answer(reader, prompt, *full) : Answer{};
    if (answer.ids.empty())
        throw NothingToShow(
            fmt::format("{}: prompt {} has no answer of the full run to compare with; `kvscope run` records one if it "
                        "decodes at least one token (-n)",
                        reader.path().string(), prompt));
    return answer;
}

/// Returns the first step at which two answers differ, or −1.
int first_difference(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    const auto [at, of_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (at == a.end() && of_b == b.end()) return -1;
    return static_cast<int>(at - a.begin());
}

std::vector<Cell> kl_cells(const trace::Reader& reader, Place place, const trace::ResultRow& row, double threshold) {
    if (!reader.has(place, schema::run::step_kl)) return {Cell(), Cell(), Cell()};
    const auto kl = reader.read<float>(place, schema::run::step_kl);
    if (kl.empty()) return {Cell(), Cell(), Cell()};
    const auto above =
        std::find_if(kl.begin(), kl.end(), [&](float value) { return value > static_cast<float>(threshold); });
    double largest = 0;
    for (const float value : kl) largest = std::max(largest, static_cast<double>(value));
    return {above == kl.end() ? Cell() : Cell(static_cast<int64_t>(above - kl.begin())), known_cell(row.kl), largest};
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<int> runs = chosen_runs(reader, options);
    const Answer full = read_full_answer(reader, options.prompt);
    const double threshold = options.numeric_option("threshold", threshold_nats, 0, most_nats);
    RankingRows rows(SubjectTable(
        "answers", "Runs ranked by the first token of their answer that differs from the full run's answer",
        {SubjectKey::run, label_column(), Column{"differs", "Differs", "", ColumnType::text},
         Column{"first_difference", "First difference", "", ColumnType::integer},
         Column{"token_text", "Token of run", "", ColumnType::text},
         Column{"token_text_full", "Token of full", "", ColumnType::text},
         Column{"first_step_above", fmt::format("First KL > {}", threshold), "", ColumnType::integer},
         Column{"kl_mean", "Mean KL", "nats", ColumnType::real, 4},
         Column{"kl_max", "Largest KL", "nats", ColumnType::real, 4}}));
    const std::vector<trace::ResultRow> measured = result_rows(reader, options.prompt, runs, ignore_damage);
    for (size_t i = 0; i < runs.size(); ++i) {
        const int run = runs[i];
        const Answer answer = read_answer(reader, options.prompt, run);
        const bool has_answer = !answer.ids.empty();
        const int step = has_answer ? first_difference(answer.ids, full.ids) : -1;
        const bool differs = step >= 0;
        const auto at = static_cast<size_t>(step);
        std::vector<Cell> cells = {run_label(reader.run(options.prompt, run)),
                                   std::string(!has_answer ? "no answer"
                                               : differs   ? "yes"
                                                           : "never"),
                                   differs ? Cell(int64_t{step}) : Cell(), differs ? Cell(answer.at(at)) : Cell(),
                                   differs ? Cell(full.at(at)) : Cell()};
        for (Cell& cell : kl_cells(reader, Place::of_run(options.prompt, run), measured[i], threshold))
            cells.push_back(std::move(cell));
        rows.add({{.run = run, .step = step}}, differs ? -static_cast<double>(step) : unknown, std::move(cells));
    }
    return rows.take();
}

}  // namespace

FigureDefinition answers_figure() {
    return define_ranking<make, chosen_runs>(
        "answers", "Answers that differ from full",
        "Runs ranked by the first token of their answer that differs from the full run's answer, with the first "
        "step whose KL exceeds a threshold. Equal answers come last",
        {{"runs", "runs, by label, policy or number; default: all except full"},
         {"threshold",
          "KL in nats above which a step counts; default: 0.1",
          {},
          {},
          {},
          NumberField{"KL above", "nats", threshold_nats, most_nats}}});
}

}  // namespace kvscope::analysis
