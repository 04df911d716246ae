#pragma once

#include "engine/common/engine_error.h"
#include "engine/decode/conversation.h"

namespace kvscope::engine::testing {

/// Asks one run. @throws UsageError if the question cannot be asked; RunError if answering failed
[[nodiscard]] inline Reply ask_one_run(Conversation& conversation, const Model& model, std::string_view question,
                                       const QuestionOptions& options, Progress& progress,
                                       const std::function<void(int32_t)>& on_token = nullptr) {
    Conversation* const one = &conversation;
    Reply reply = std::move(ask_all_runs(model, {&one, 1}, question, options, progress, [&](size_t, int32_t id) {
        if (on_token) on_token(id);
    })[0]);
    if (reply.refused) throw UsageError(reply.error);
    if (!reply.error.empty()) throw RunError(reply.error);
    return reply;
}

}  // namespace kvscope::engine::testing
