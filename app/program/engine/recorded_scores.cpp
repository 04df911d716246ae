#include "app/program/engine/recorded_scores.h"

#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "common/sha256.h"
#include "trace/reader.h"
#include "trace/records/storable_text.h"

namespace kvscope::program {
namespace {

/// Tasks whose scorer depends only on prediction and answers.
constexpr const char* tasks_with_one_scorer[] = {"gsm8k", "math500", "aime", "longbench-v2"};

/// Returns the scorer with these names; nullopt if it depends on the sample.
std::optional<engine::Scorer> scorer_named(const std::string& metric, const std::string& scored_as) {
    std::vector<engine::Scorer> known{engine::string_match_all(), engine::string_match_part()};
    for (const char* task : tasks_with_one_scorer) known.push_back(engine::task_named(task).scorer);
    for (engine::Scorer& scorer : known)
        if (scorer.metric == metric && scorer.scored_as == scored_as) return std::move(scorer);
    return std::nullopt;
}

}  // namespace

RecordedScores::RecordedScores(const PreparedJob& prepared) {
    if (prepared.job.prompt_from.empty()) return;
    std::set<std::string> wanted;
    for (const engine::Prompt& prompt : prepared.prompts) wanted.insert(sha256_of(trace::storable_text(prompt.text)));
    const trace::Reader reader(trace_of_prompts(prepared.job));
    std::vector<std::string> tables = reader.result_tasks();
    if (reader.has_results(trace::schema::root::prompt_results))
        tables.emplace_back(trace::schema::root::prompt_results);
    for (const std::string& table : tables) {
        for (const trace::ResultRow& row : reader.results(table)) {
            const bool is_scored = !row.metric.empty() && row.status == trace::schema::run::status_complete;
            if (!is_scored || !wanted.contains(row.prompt_hash)) continue;
            OfPrompt& of = prompts_[{row.prompt_hash, row.question_seen}];
            if (of.metric.empty()) of = {row.metric, row.scored_as, {}};
            if (std::isfinite(row.score) && row.metric == of.metric && row.scored_as == of.scored_as)
                of.of_predictions[row.prediction] = row.score;
        }
    }
}

std::optional<engine::Scorer> RecordedScores::scorer_of(const trace::ResultRow& row) const {
    const auto found = prompts_.find({row.prompt_hash, row.question_seen});
    if (found == prompts_.end()) return std::nullopt;
    const OfPrompt& of = found->second;
    if (auto known = scorer_named(of.metric, of.scored_as)) return known;
    const auto score = [scores = of.of_predictions](std::string_view prediction, std::span<const std::string>) {
        const auto same = scores.find(std::string(prediction));
        return same == scores.end() ? trace::ResultRow::unknown : same->second;
    };
    return engine::Scorer{of.metric, score, of.scored_as};
}

}  // namespace kvscope::program
