#pragma once

#include <memory>

#include "app/gui/session/engine_session.h"
#include "engine/common/progress.h"
#include "engine/inference/live_prefill.h"
#include "engine/inference/prompt.h"
#include "engine/model/model.h"

namespace kvscope::gui {

/// @param is_engine_busy called before each decision; if true, the decision uses one core instead of all, because
/// parallel loops of two threads wait for each other
std::shared_ptr<const PrefillInMemory> prefill_in_memory(std::shared_ptr<const engine::LivePrefill> prefill,
                                                         std::function<bool()> is_engine_busy);

/// Reads a prompt in order to make decisions from its prefill later. Throws the exceptions of engine::prefill.
/// @param window window of the recorded window attention, in queries; 0: the default
std::shared_ptr<const engine::LivePrefill> read_prompt(const engine::Model& model, const engine::Prompt& prompt,
                                                       int64_t window, engine::Progress& progress);

}  // namespace kvscope::gui
