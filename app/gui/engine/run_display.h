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

/// Shows the results of a run job as they arrive: first from memory, at the end from the finished file.
class RunDisplay : public std::enable_shared_from_this<RunDisplay> {
 public:
    /// @param of_task whether the job answers a benchmark task, whose scores are shown once the job ends or pauses
    RunDisplay(std::filesystem::path output, bool of_task, Notice notice, std::function<void()> before_step);

    /// Connects to an experiment, whose callbacks keep this object alive. Call on the engine's thread.
    /// @param post passes a function to the UI thread
    void attach(engine::Experiment& experiment, std::shared_ptr<const engine::Model> model,
                const engine::Progress& progress, const std::function<void(std::function<void()>)>& post,
                Session& session);

    // Called on the UI thread:
    void update(Session& session);
    void finish(Session& session);
    /// Writes the answers decoded so far to the folder of the unfinished trace. Called on the engine's thread.
    void store_answers(const std::stop_token& stop);
    /// Shows partial answers of a run that has paused.
    void stop(Session& session);
    /// Shows partial answers and a notice for a run that has ended early.
    void end_early(Session& session);
    /// Marks the partial answers as unfinished again when the run continues.
    void go_on(Session& session);
    /// Returns the id of the document, or −1 if the trace is not open.
    [[nodiscard]] int document() const { return document_; }
    [[nodiscard]] std::vector<PartialAnswer> partial_answers(Session& session);
    void switch_cache(int run);

 private:
    using Records = std::map<int, trace::RunRecord>;  ///< by number in the trace
    struct Arrived {
        int prompt = 0;
        int run = 0;
        trace::RunRecord record;
    };

    void show_scores(Session& session, bool is_finished);
    void open(Session& session, int prompt);
    void show(Session& session, bool reload);
    void select_first(Session& session);
    void show_one_budget(Session& session, Document& document) const;
    void answer(int prompt);
    void end_answer(int run);
    [[nodiscard]] RunKey key_of_answered(const Session& session, size_t run) const;
    void keep_partial_answers(Session& session);
    void store_answers_in_time(const std::stop_token& stop);

    std::filesystem::path output_;
    bool of_task_;
    Notice notice_;
    std::function<void()> before_step_;
    std::shared_ptr<const engine::Model> model_;
    int document_ = -1;
    size_t n_shown_samples_ = 0;              ///< of a task: finished samples when the job last stopped
    Cursor selected_;                         ///< the place that this object has selected
    std::map<int, Records> waiting_;          ///< by prompt: results not shown yet
    std::map<int, Records> partly_answered_;  ///< by prompt: records before stop() added partial answers
    std::vector<std::string> labels_;
    TaskSlot<std::string> texts_;

    std::mutex mutex_;
    std::vector<Arrived> arrived_;
    int answered_ = -1;                          ///< prompt that is being answered
    std::map<int, std::string> questions_;       ///< by prompt
    std::vector<std::vector<int32_t>> answers_;  ///< by run: tokens decoded so far
    std::map<int, bool> is_full_;                ///< by run; contains only runs whose cache can switch its form
    std::set<int> to_switch_;                    ///< runs to switch after the next step
    std::vector<std::string> labels_in_engine_;  ///< by run
    std::chrono::steady_clock::time_point store_next_at_ = {};
    std::set<int> ended_;  ///< runs whose answer is complete
};

}  // namespace kvscope::gui
