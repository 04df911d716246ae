#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/session/document.h"
#include "engine/common/progress.h"
#include "engine/decode/conversation.h"
#include "engine/model/model.h"
#include "engine/rerun_recorded_runs.h"
#include "trace/reader.h"

namespace kvscope::gui {

struct QuestionJob {
    struct Asked {
        int run;                                      ///< index in the reader
        int answer;                                   ///< see FurtherAnswer::id
        std::string name;                             ///< see RunCaches::name_of()
        std::shared_ptr<engine::Conversation> cache;  ///< nullptr if it has to be rebuilt
    };
    int document = -1;
    int prompt = 0;
    std::shared_ptr<const trace::Reader> reader;
    std::string question;
    std::vector<Asked> runs;
};

/// Callbacks of answer_question_job(), called on the engine's thread.
struct QuestionEvents {
    std::function<void(int answer, std::function<void(FurtherAnswer&)>)> on_change;
    std::function<void(const QuestionJob::Asked&, const engine::RepeatedRun&)> on_made_again;
};

/// Rebuilds missing caches, then asks all caches as one batch. Finishes every answer before it rethrows an exception.
/// @param model returns the trace's model and loads it if necessary
void answer_question_job(QuestionJob& job, const std::function<const engine::Model&()>& model,
                         engine::Progress& progress, const QuestionEvents& events);

/// Finishes the unfinished answers of a dropped job with an error.
void finish_answers_with_error(const QuestionJob& job,
                               const std::function<void(int, std::function<void(FurtherAnswer&)>)>& on_change,
                               const std::string& error);

}  // namespace kvscope::gui
