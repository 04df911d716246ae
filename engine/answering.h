#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/active_run.h"
#include "engine/inference/compare.h"
#include "engine/inference/generate.h"

namespace kvscope::engine {

/// What a cache decodes from: the sequence and the logits of its first token.
struct AnswerStart {
    RunCache cache;
    policies::Policy* acting = nullptr;
    int64_t position = 0;
    std::vector<float> logits;
    std::string run{};  ///< its label
    /// Where the run's own cache ended before the question; none for a copy.
    std::optional<RunCache::Mark> own{};
    std::string error{};  ///< why nothing can be decoded from it; empty where it can
    policies::Switching switching{};

    Sequence sequence() { return {&cache, position, 0, acting, run, error, switching}; }
};

/// Answers to one question from several caches at once, and how far they are from the full cache's.
class Answering {
 public:
    Answering(const Model& model, const ExperimentOptions& options, Timings& timings, Progress& progress)
        : model_(model), options_(options), timings_(timings), progress_(progress) {}

    /// Reads the question, if the policies did not see it, into every run's cache, or, where that cannot be undone,
    /// into a copy of it. `give_back` has to follow.
    /// @param last_question of this context: no cache is copied, unless they are to be kept
    /// @returns what each run decodes from; a run whose cache cannot be copied or read into has its error there
    std::vector<AnswerStart> read_question(const Prompt& prompt, std::span<ActiveRun* const> runs, bool last_question);
    void read_question(const Prompt& prompt, std::vector<AnswerStart>& starts);

    /// The runs' caches as they were before the question.
    /// @param starts of these runs, not needed any more
    static void give_back(std::span<ActiveRun* const> runs, std::span<AnswerStart> starts);

    /// Decodes as one batch and rewinds to the end of the prompt. Where a cache cannot be rewound, a copy is decoded.
    /// What `on_end` is told of is rewound already; its time is not that of decoding. Where a cache changed its form at
    /// someone's request, `starts` say when, and the comparison follows.
    /// @returns an answer for each of `starts`, those that failed with their errors. @throws Cancelled
    std::vector<Generation> decode(std::span<AnswerStart> starts, const OnToken& on_token,
                                   const OnEnd& on_end = nullptr, const AskSwitch& ask_switch = nullptr);

    /// What the full cache, which is rewound to the end of the prompt, says at each step of its own answer.
    /// Where measures are recorded, with `keys_behind`.
    /// @param attention receives `answer_attention` over the first n_context tokens; may be nullptr
    /// @throws RunError where it cannot read its answer; Cancelled
    FullReference reference(AnswerStart& full, const Generation& answer, int64_t n_context,
                            std::vector<float>* attention, Progress& progress);

    /// Reads the full run's answer into caches that stand at the end of the prompt, and leaves it there.
    /// @returns a comparison for each of `starts`. @throws Cancelled
    std::vector<Comparison> compare(const FullReference& reference, std::span<AnswerStart* const> starts,
                                    Progress& progress);

    /// Fills the comparisons' `attention_lost`, but of those with an error and of runs that evict while they decode:
    /// what they hold changes from step to step.
    /// @param full holds the prompt
    /// @param runs of each of `comparisons`
    /// @throws Cancelled
    void add_attention_lost(const RunCache& full, const FullReference& reference, int64_t n_context,
                            std::span<const ActiveRun* const> runs, std::span<Comparison> comparisons,
                            Progress& progress);

 private:
    const Transformer& transformer() const { return model_.transformer(); }

    const Model& model_;
    const ExperimentOptions& options_;
    Timings& timings_;
    Progress& progress_;
};

}  // namespace kvscope::engine
