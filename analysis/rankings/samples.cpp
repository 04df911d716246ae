#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/measures/wrong_answer.h"
#include "analysis/ranking.h"
#include "analysis/results/questions_of_samples.h"
#include "analysis/results/result.h"
#include "analysis/results/settings.h"
#include "analysis/runs/row_settings.h"
#include "analysis/runs/run_name.h"
#include "analysis/runs/task_scores.h"
#include "common/bounded_json.h"
#include "common/hidden_question.h"
#include "common/json.h"
#include "common/shared_text.h"

namespace kvscope::analysis {
namespace {

/// Returns the cells of a row. Copies no text that it can move, unlike an initializer list.
template <class... Values>
std::vector<Cell> cells_of(Values&&... values) {
    std::vector<Cell> cells;
    cells.reserve(sizeof...(values));
    (cells.emplace_back(std::forward<Values>(values)), ...);
    return cells;
}

/// Returns "481516 | four" for the JSON list of accepted answers.
std::string expected_text(const std::string& answers_json) {
    const auto list = bounded_json::parse_or_discard(answers_json);
    std::vector<std::string> answers;
    if (list.is_array())
        for (const auto& answer : list)
            if (answer.is_string()) answers.push_back(answer);
    return fmt::format("{}", fmt::join(answers, " | "));
}

SharedText answer_text(const trace::ResultRow& row) {
    return row.status == trace::schema::run::status_complete ? row.prediction : row.status;
}

double score_of(const trace::ResultRow& row) {
    return row.status == trace::schema::run::status_complete ? row.score : trace::ResultRow::unknown;
}

/// Returns the name by which `kvscope run --prompt-from` finds the sample.
std::string name_of_sample(const trace::ResultRow& row, const RowSettings& settings) {
    return row.sample_id + (settings.question_seen == false ? std::string(hidden_question_suffix) : "");
}

/// Returns the subjects of rows_of_prompts(): prompts and their runs, unless the trace stores only rows.
std::vector<RankedSubject> recorded_runs(const trace::Reader& reader) {
    std::vector<RankedSubject> runs;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt)
        for (int run = 0; run < reader.n_runs(prompt); ++run)
            runs.push_back({.subject = {.run = run}, .prompt = prompt});
    return runs;
}

/// @param subjects one per result, or empty if the trace stores only results
void add_samples(RankingRows& rows, const std::string& task, std::span<const trace::ResultRow> results,
                 std::span<const RankedSubject> subjects, const QuestionsOfSamples& questions, ChosenRuns& chosen,
                 const FigureOptions& options) {
    const SettingsOfRows settings = settings_of_rows(results);
    struct GroupCells {
        bool is_chosen;
        SharedText label, budget;
    };
    std::vector<GroupCells> groups;
    for (const TaskGroup& group : group_results_by_setting_and_budget(results, settings))
        groups.push_back({is_chosen(chosen, group, options), names_of(group, options).whole, group.budget});
    std::unordered_map<size_t, const trace::ResultRow*> full;  // by number of the sample
    for (size_t i = 0; i < results.size(); ++i)
        if (results[i].policy == full_policy) full.try_emplace(settings.rows[i].sample, &results[i]);
    const SharedText shared_task = task;
    SharedText answers_json, expected, name;
    Cell question;
    const trace::ResultRow* last = nullptr;  // the row of `question` and `name`
    for (size_t i = 0; i < results.size(); ++i) {
        const GroupCells& group = groups[settings.rows[i].group];
        const trace::ResultRow& row = results[i];
        const bool is_compared = row.policy != full_policy || !options.runs.empty();
        if (!is_compared || !group.is_chosen) continue;
        const auto control = full.find(settings.rows[i].sample);
        const double full_score = control == full.end() ? trace::ResultRow::unknown : score_of(*control->second);
        const double score = score_of(row);
        const double lost = full_score - score;
        if (row.answers_json != answers_json) expected = expected_text(answers_json = row.answers_json);
        if (!last || row.sample_id != last->sample_id || row.question_seen != last->question_seen) {
            last = &row;
            const auto asked = questions.find({row.sample_id, row.question_seen != 0});
            question = asked == questions.end() ? Cell() : Cell(asked->second);
            name = name_of_sample(row, settings.of(i));
        }
        rows.add(
            subjects.empty() ? RankedSubject() : subjects[i], std::isnan(lost) ? row.kl : lost,
            cells_of(group.label, group.budget, shared_task, row.subset, name,
                     row.length > 0 ? Cell(row.length) : Cell(), known_cell(row.depth), known_cell(score),
                     known_cell(full_score), known_cell(lost), known_cell(row.kl), question, expected, answer_text(row),
                     control == full.end() ? Cell() : Cell(answer_text(*control->second)), cause_in_words(row)),
            row.kl);
    }
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<std::string> tasks = reader.result_tasks();
    RankingRows rows(SubjectTable(
        "samples", "Samples and prompts ranked by the score that a run loses against the full run",
        {Column{"policy", "Policy", ""}, Column{"budget", "Budget", ""}, Column{"task", "Task", ""},
         Column{"subset", title_of_subset(tasks.size() == 1 ? tasks.front() : ""), ""}, Column{"sample", "Sample", ""},
         Column{"length", "Length", "tokens", ColumnType::integer}, Column{"depth", "Depth", "", ColumnType::real, 2},
         Column{"score", "Score", "", ColumnType::real, 3},
         Column{"full_score", "Score of full", "", ColumnType::real, 3},
         Column{"lost", "Lost", "", ColumnType::real, 3}, Column{"kl", "KL", "nats", ColumnType::real, 3},
         Column{"question", "Question", ""}, Column{"expected", "Expected", ""}, Column{"answer", "Answer", ""},
         Column{"full_answer", "Answer of full", ""}, Column{"cause", "Cause of a wrong answer", ""}}));
    const auto questions = questions_of_samples(reader);
    ChosenRuns chosen(options);
    bool has_results = false;
    const auto add = [&](const std::string& task, std::span<const trace::ResultRow> results,
                         std::span<const RankedSubject> subjects) {
        if (!results.empty()) add_samples(rows, task, results, subjects, questions, chosen, options);
        has_results |= !results.empty();
    };
    for (const std::string& task : tasks) add(task, reader.results(task), {});
    if (!has_results)
        add(std::string(trace::schema::root::prompt_results), rows_of_prompts(reader), recorded_runs(reader));
    if (!has_results)
        throw NothingToShow(
            fmt::format("{}: the trace has no samples or prompts; `kvscope eval` and `kvscope run` make such a trace",
                        reader.path().string()));
    chosen.require_known();
    Ranking ranking = rows.take();
    if (ranking.table.rows.empty())
        throw NothingToShow(fmt::format("{}: the full run is the only one, so that no run can be compared with it",
                                        reader.path().string()));
    return ranking;
}

}  // namespace

FigureDefinition samples_figure() {
    FigureDefinition definition = define_ranking<make>(
        "samples", "Samples and prompts",
        "Samples of a task, or prompts, ranked by the score that a run loses against the full run, or without a score "
        "by KL(full ‖ run), with question, expected answer and answers. Equal scores are ranked by KL. Rows of the "
        "full run are listed only if chosen",
        {{"runs", names_of_results_help}});
    definition.is_of_prompt = [](const FigureOptions&) { return false; };
    definition.runs_are_settings = true;
    return definition;
}

}  // namespace kvscope::analysis
