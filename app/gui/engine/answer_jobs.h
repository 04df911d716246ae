#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/engine/run_caches.h"
#include "app/gui/session/document.h"
#include "app/gui/session/selection.h"
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

/// Returns jobs that ask each of these runs, one job per prompt, and adds an unfinished answer for each run.
[[nodiscard]] std::vector<QuestionJob> question_jobs(Session& session, const std::vector<RunKey>& runs,
                                                     const std::string& question, const RunCaches& caches);

/// Changes an answer of a document, if both still exist.
void change_answer(Session& session, int document, int answer, const std::function<void(FurtherAnswer&)>& change);

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

struct DecodingJob {
    struct WhatIf {
        int run;  ///< index in the reader
        RunKey key;
        std::string name;  ///< see RunCaches::name_of()
    };
    int prompt = 0;
    std::shared_ptr<const trace::Reader> reader;
    std::vector<WhatIf> what_ifs;
};

/// Returns jobs that decode the runs that are what-ifs, one job per prompt.
[[nodiscard]] std::vector<DecodingJob> decoding_jobs(const Session& session, const std::vector<RunKey>& runs);

/// Callbacks of decode_what_ifs(), called on the engine's thread.
struct DecodingEvents {
    std::function<void(const DecodingJob::WhatIf&, const std::string& label, const std::string& text)> on_text;
    std::function<void(const DecodingJob::WhatIf&, const engine::RepeatedRun&)> on_decoded;
};

/// Decodes what-ifs as one batch. Throws like engine::rerun_recorded_runs, or std::runtime_error with names of failed
/// what-ifs.
void decode_what_ifs(const DecodingJob& job, const engine::Model& model, engine::Progress& progress,
                     const DecodingEvents& events);

}  // namespace kvscope::gui
