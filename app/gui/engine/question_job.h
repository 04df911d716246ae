#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/session/document.h"
#include "engine/common/progress.h"
#include "engine/inference/conversation.h"
#include "engine/model/model.h"
#include "engine/repeat.h"
#include "trace/reader.h"

namespace kvscope::gui {

/// One question to runs of one prompt.
struct QuestionJob {
    struct Asked {
        int run;                                      ///< of the reader
        int answer;                                   ///< FurtherAnswer::id
        std::string name;                             ///< RunCaches::name_of
        std::shared_ptr<engine::Conversation> cache;  ///< nullptr: to be made again
    };
    int document = -1;
    int prompt = 0;
    std::shared_ptr<const trace::Reader> reader;
    std::string question;
    std::vector<Asked> runs;
};

/// What a question job tells on its way; called on the engine's thread.
struct QuestionEvents {
    std::function<void(int answer, std::function<void(FurtherAnswer&)>)> on_change;
    std::function<void(const QuestionJob::Asked&, const engine::RepeatedRun&)> on_made_again;
};

/// Makes the caches again that are missing, with one prefill, then asks all of them as one batch. Every answer ends,
/// with its error where it has one.
/// @param model gives the trace's model, which may have to be loaded first
/// @throws what `model`, engine::repeat_runs and engine::ask_all throw, when that is told
void answer(QuestionJob& job, const std::function<const engine::Model&()>& model, engine::Progress& progress,
            const QuestionEvents& events);

/// Ends the answers that have not ended, with an error: of a job that is dropped before it begins. @param on_change as
/// in QuestionEvents
void end_all(const QuestionJob& job, const std::function<void(int, std::function<void(FurtherAnswer&)>)>& on_change,
             const std::string& error);

}  // namespace kvscope::gui
