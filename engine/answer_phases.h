#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/active_run.h"
#include "engine/decode/compare.h"
#include "engine/decode/decode_answers.h"

namespace kvscope::engine {

struct AnswerStart {
    RunCache cache;
    AfterAttention acting{};
    int64_t position = 0;
    std::vector<float> logits;  ///< logits of the first token
    std::string run{};          ///< label of the run
    /// Lengths of the run's cache before the question; nullopt if this start uses a copy of the cache.
    std::optional<RunCache::Mark> own{};
    std::string error{};  ///< why decoding cannot start; empty if it can
    policies::StorageSwitching switching{};

    [[nodiscard]] bool acts() const { return acting.index() != 0; }
    [[nodiscard]] Sequence sequence() { return {&cache, position, 0, acting, run, error, switching}; }
};

class AnswerPhases {
 public:
    AnswerPhases(const Model& model, const ExperimentOptions& options, Timings& timings, Progress& progress)
        : model_(model), options_(options), timings_(timings), progress_(progress) {}

    /// Reads a question that the policies did not see into every run's cache, or into a copy if the cache cannot be
    /// rewound or is needed again. give_back() must follow. Starts of failed runs contain an error.
    std::vector<AnswerStart> read_question(const Prompt& prompt, std::span<ActiveRun* const> runs, bool last_question);
    void read_question(const Prompt& prompt, std::vector<AnswerStart>& starts);

    /// Appends `options.batch` - 1 copies of the only start, each with its own cache. Gives the start an error if its
    /// copies would share entries or the state of the policy.
    void add_copies(std::vector<AnswerStart>& starts) const;

    /// Restores the runs' caches to their state before the question. Invalidates the starts.
    static void give_back(std::span<ActiveRun* const> runs, std::span<AnswerStart> starts);

    /// Decodes all answers as one batch and rewinds the caches to the end of the prompt before it calls `on_end`.
    /// Records switches between whole and stored entries in `starts`, so that compare() repeats them.
    std::vector<Generation> decode(std::span<AnswerStart> starts, const OnToken& on_token,
                                   const OnEnd& on_end = nullptr, const AskSwitch& ask_switch = nullptr);

    /// Returns the full run's predictions at each step of its answer, from a cache that ends with the prompt.
    /// @param attention receives answer_attention() of the first n_context tokens; may be nullptr
    [[nodiscard]] FullReference reference(AnswerStart& full, const Generation& answer, int64_t n_context,
                                          std::vector<float>* attention, Progress& progress);

    /// Compares each start with the full run's answer. The caches must end with the prompt.
    [[nodiscard]] std::vector<Comparison> compare(const FullReference& reference, std::span<AnswerStart* const> starts,
                                                  Progress& progress);

    /// Sets `attention_lost`, except for failed comparisons and runs that evict while decoding.
    void add_attention_lost(const RunCache& full, const FullReference& reference, int64_t n_context,
                            std::span<const ActiveRun* const> runs, std::span<Comparison> comparisons,
                            Progress& progress);

 private:
    [[nodiscard]] const Transformer& transformer() const { return model_.transformer(); }

    const Model& model_;
    const ExperimentOptions& options_;
    Timings& timings_;
    Progress& progress_;
};

}  // namespace kvscope::engine
