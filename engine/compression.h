#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/active_run.h"
#include "engine/classifier/token_classifier.h"
#include "engine/prefill/observed_layer.h"
#include "engine/prefill/prefill_observations.h"

namespace kvscope::engine {

using Runs = std::vector<std::unique_ptr<ActiveRun>>;

using Held = std::vector<std::unique_ptr<ObservedLayer>>;

/// Observations of a layer that policies requested, for the prompt and for each tail of pseudo tokens.
using LayersAsked = std::vector<policies::LayerObservations::Asked>;

/// Reads the prompt once and lets all runs select their entries, also with classifiers, lookahead or a second pass.
class Compression {
 public:
    Compression(const Model& model, const ExperimentOptions& options, Timings& timings, Progress& progress)
        : model_(model), options_(options), timings_(timings), progress_(progress) {}

    void load_classifier(ActiveRun& run);

    /// Receives the attention (H, N) of each layer's window, as in `full/window_attention`, if set.
    std::function<void(std::span<const float> attention)> on_window_attention;

    /// Reads the tokens that the policies see, and lets each run select.
    /// @param room number of free entries that a full cache needs after the prompt
    /// @param known_attention `full/window_attention` (L, H, N) of an earlier prefill; may be empty
    /// @returns the layers if a run needs the full run's answer to select; otherwise nothing
    Held compress(const Prompt& prompt, Runs& runs, int64_t room, trace::PromptRecord* record,
                  std::span<const float> known_attention,
                  std::unique_ptr<PrefillObservations>* prefill_observations = nullptr);

 private:
    [[nodiscard]] const Transformer& transformer() const { return model_.transformer(); }
    void classify(const Prompt& prompt, Runs& runs);
    void work_out(PrefillLayer& layer, const LayersAsked& before, Runs& runs);
    [[nodiscard]] std::vector<ActiveRun*> show_layer(PrefillLayer& layer, Runs& runs, std::span<const int> tail_of_run,
                                                     std::span<const float> attention);
    void record_alignment(std::span<const int32_t> ids, trace::PromptRecord& record);
    void decide_by_lookahead(const Prompt& prompt, Runs& runs, const Held& held, std::span<const float> last_logits,
                             std::span<const float> attention);
    void read_in_chunks(const Prompt& prompt, Runs& runs, std::span<const float> attention);
    [[nodiscard]] bool finish_runs(const Prompt& prompt, Runs& runs, int64_t room, const PrefillResult& result,
                                   std::span<const float> attention);
    void run_again(const Prompt& prompt, ActiveRun& run, int64_t room, std::span<const float> attention);

    const Model& model_;
    const ExperimentOptions& options_;
    Timings& timings_;
    Progress& progress_;
    std::map<std::string, std::unique_ptr<TokenClassifier>> classifiers_;  ///< key: directory of the classifier
};

}  // namespace kvscope::engine
