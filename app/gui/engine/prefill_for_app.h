#pragma once

#include <memory>

#include "app/gui/session/engine_session.h"
#include "engine/common/progress.h"
#include "engine/inference/live_prefill.h"
#include "engine/inference/prompt.h"
#include "engine/model/model.h"

namespace kvscope::gui {

/// @param is_engine_busy asked before each decision: with a free machine it is made on all cores, else on one, since
///                       parallel loops of two threads wait for one another
std::shared_ptr<const PrefillInMemory> prefill_in_memory(std::shared_ptr<const engine::LivePrefill> prefill,
                                                         std::function<bool()> is_engine_busy);

/// A prompt's prefill, made for nothing but later decisions.
/// @param window of the full cache's window attention; 0: the default
/// @throws what engine::prefill throws
std::shared_ptr<const engine::LivePrefill> read_prompt(const engine::Model& model, const engine::Prompt& prompt,
                                                       int64_t window, engine::Progress& progress);

}  // namespace kvscope::gui
