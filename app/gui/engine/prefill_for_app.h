#pragma once

#include <memory>

#include "app/gui/session/engine_session.h"
#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "engine/prefill/prefill_observations.h"
#include "engine/prefill/prompt.h"

namespace kvscope::gui {

/// @param is_engine_busy whether a job runs; decisions then use one core, because parallel loops block each other
[[nodiscard]] std::shared_ptr<const PrefillInMemory> make_prefill_in_memory(
    std::shared_ptr<const engine::PrefillObservations> prefill, std::function<bool()> is_engine_busy);

/// Computes a prefill and keeps the data that policies need to decide later, but no cache. Throws as engine::prefill.
/// @param window window of the recorded attention, in queries; 0: the default
[[nodiscard]] std::shared_ptr<const engine::PrefillObservations> compute_prefill_observations(
    const engine::Model& model, const engine::Prompt& prompt, int64_t window, engine::Progress& progress);

}  // namespace kvscope::gui
