#include "app/results/kvpress_scores.h"

#include <algorithm>
#include <utility>

#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/sets.h"

namespace kvscope::results {
namespace {

using engine::Scorer;

/// Applies a scorer to a prediction that `change` has changed.
Scorer with_changed_prediction(Scorer scorer, std::string (*change)(std::string_view), std::string scored_as) {
    return {
        scorer.metric,
        [score = std::move(scorer.score), change](std::string_view prediction, std::span<const std::string> answers) {
            return score(change(prediction), answers);
        },
        std::move(scored_as)};
}

/// kvpress removes the control characters that RULER replaces by line feeds.
std::string without_control_characters(std::string_view text) {
    std::string out(text);
    std::erase_if(out, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    return out;
}

std::string without_space_before(std::string_view text) {
    return std::string(engine::longbench::without_leading_space(text));
}

Scorer ruler_scorer(std::string_view task) {
    return with_changed_prediction(task.starts_with("qa") ? engine::string_match_part() : engine::string_match_all(),
                                   without_control_characters, "ruler as in kvpress");
}

std::optional<Scorer> longbench_scorer(std::string_view task, const std::vector<std::string>& classes, bool is_e) {
    const auto sets = engine::longbench::sets();
    const auto set = std::ranges::find(sets, task, &engine::longbench::Set::name);
    if (set == sets.end() || set->needs_cuts() || (set->has_classes() && classes.empty())) return std::nullopt;
    engine::longbench::ScoreInputs inputs{.classes = classes};
    if (is_e) return set->scorer(std::move(inputs));
    inputs.scored_as = engine::longbench::ScoredAs::kvpress;
    Scorer scorer = set->scorer(std::move(inputs));
    std::string scored_as = scorer.scored_as;
    return with_changed_prediction(std::move(scorer), without_space_before, std::move(scored_as));
}

double score_of_longbench_v2(std::string_view prediction, std::span<const std::string> answers) {
    std::string text(prediction);
    std::erase(text, '*');
    const bool is_right = text.find("The correct answer is (" + answers.front() + ")") != std::string::npos ||
                          text.find("The correct answer is " + answers.front()) != std::string::npos;
    return is_right ? 1 : 0;
}

}  // namespace

std::optional<Scorer> scorer_of_kvpress(std::string_view dataset, std::string_view task,
                                        const std::vector<std::string>& classes) {
    if (dataset == "ruler") return ruler_scorer(task);
    if (dataset == "longbench" || dataset == "longbench-e")
        return longbench_scorer(task, classes, dataset == "longbench-e");
    if (dataset == "longbench-v2") return Scorer{"accuracy", score_of_longbench_v2, "longbench-v2 as in kvpress"};
    if (dataset == "jsonl") return engine::string_match_part();
    return std::nullopt;
}

}  // namespace kvscope::results
