#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/gui/session/tasks.h"
#include "engine/experiment.h"

namespace kvscope::gui {

class Document;
class Session;

/// A run job as its results come: the trace is opened once its first prompt is on disk, kept sets are shown from
/// memory, and at the end the joined file takes their place under the same document. Prompts can be gone through
/// meanwhile.
class RunInWindow : public std::enable_shared_from_this<RunInWindow> {
 public:
    /// @param before_step as make_engine_session has it
    RunInWindow(std::filesystem::path output, std::function<void(const std::string&, bool is_error)> notice,
                std::function<void()> before_step);

    /// The engine's thread; what it hands over keeps this alive. @param post hands something to the window's thread
    void attach(engine::Experiment& experiment, std::shared_ptr<const engine::Model> model,
                const std::function<void(std::function<void()>)>& post, Session& session);

    // The window's thread.
    void update(Session& session);
    void finish(Session& session);
    /// The engine's thread: writes what is decoded so far beside the unfinished trace.
    void store_answers();
    /// The run is paused: what is in memory stays to be looked at, with as much of each answer as was decoded.
    void stop(Session& session);
    /// The same for a run that has ended before it was finished, with a notice.
    void end_early(Session& session);
    /// The paused run continues: answers that `stop` kept are unfinished again.
    void go_on(Session& session);
    /// −1 where its trace is not open.
    int document() const { return document_; }
    /// Of the prompt that is answered.
    std::vector<PartialAnswer> partial_answers(Session& session);
    /// As EngineSession::switch_cache.
    void switch_cache(int run);

 private:
    using Records = std::map<int, trace::RunRecord>;  ///< by number in the trace
    struct Arrived {
        int prompt;
        int run;
        trace::RunRecord record;
    };

    void open(Session& session, int prompt);
    /// Puts what waits among the document's runs. @param reload the file is read anew before. @throws what
    /// Document::reload throws
    void show(Session& session, bool reload);
    void select_first(Session& session);
    void show_one_budget(Session& session, Document& document) const;
    void answer(int prompt);
    void end_answer(int run);
    RunKey key_of_answered(const Session& session, size_t run) const;
    void keep_partial_answers(Session& session);
    /// The same, once a second at most, and in no more than a twentieth of the time.
    void store_answers_in_time();

    std::filesystem::path output_;
    std::function<void(const std::string&, bool)> notice_;
    std::function<void()> before_step_;
    std::shared_ptr<const engine::Model> model_;
    int document_ = -1;
    Cursor selected_;                         ///< what it has selected by itself
    std::map<int, Records> waiting_;          ///< by prompt: what arrived and is not shown yet
    std::map<int, Records> partly_answered_;  ///< by prompt: as they were before `stop` kept their answers
    std::vector<std::string> labels_;
    TaskSlot<std::string> texts_;

    std::mutex mutex_;
    std::vector<Arrived> arrived_;
    int answered_ = -1;                          ///< prompt
    std::map<int, std::string> questions_;       ///< by prompt
    std::vector<std::vector<int32_t>> answers_;  ///< by run: the tokens that are decoded so far
    std::map<int, bool> is_full_;                ///< by run, those whose cache can change its form
    std::set<int> to_switch_;                    ///< runs
    std::vector<std::string> labels_in_engine_;  ///< by run
    std::chrono::steady_clock::time_point store_next_at_ = {};
    std::set<int> ended_;  ///< runs whose answer is whole
};

}  // namespace kvscope::gui
