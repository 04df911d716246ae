#pragma once

#include <memory>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "engine/prefill/prefill_observations.h"
#include "engine/prefill/prompt.h"

namespace kvscope::gui {

class Session;

/// The two most recent prefills. Each belongs to all prompts with the same context. UI thread only.
class KeptPrefills {
 public:
    [[nodiscard]] std::shared_ptr<const PrefillInMemory> find(int document, int prompt) const;
    void keep(int document, const std::vector<int>& prompts, std::shared_ptr<const PrefillInMemory> prefill);
    void drop_closed(const Session& session);

 private:
    struct Kept {
        int document = -1;
        std::vector<int> prompts;
        std::shared_ptr<const PrefillInMemory> prefill;
        [[nodiscard]] bool is_of(int prompt) const;
    };
    std::vector<Kept> kept_;  ///< newest first
};

/// @param is_engine_busy whether a job runs; decisions then use one core, because parallel loops block each other
[[nodiscard]] std::shared_ptr<const PrefillInMemory> make_prefill_in_memory(
    std::shared_ptr<const engine::PrefillObservations> prefill, std::function<bool()> is_engine_busy);

/// Computes a prefill and keeps the data that policies need to decide later, but no cache. Throws as engine::prefill.
/// @param window window of the recorded attention, in queries; 0: the default
[[nodiscard]] std::shared_ptr<const engine::PrefillObservations> compute_prefill_observations(
    const engine::Model& model, const engine::Prompt& prompt, int64_t window, engine::Progress& progress);

}  // namespace kvscope::gui
