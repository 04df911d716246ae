#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/engine_session.h"
#include "engine/experiment.h"

namespace kvscope::gui {

class Session;

/// A run job as its results come: the trace is opened once its prompt is on disk, kept sets are shown from memory, and
/// at the end the joined file takes their place under the same document.
class RunInWindow {
 public:
    RunInWindow(std::filesystem::path output, std::function<void(const std::string&, bool is_error)> notice);

    /// The engine's thread. @param post hands something to the window's thread
    void attach(engine::Experiment& experiment, std::shared_ptr<const engine::Model> model,
                const std::function<void(std::function<void()>)>& post, Session& session);

    // The window's thread.
    void update(Session& session);
    void finish(Session& session);
    /// What is in memory stays to be looked at.
    void stop(Session& session);
    /// −1 where its trace is not open.
    int document() const { return document_; }
    std::vector<PartialAnswer> partial_answers() const;

 private:
    void open(Session& session);
    void show(Session& session, const std::vector<std::pair<int, trace::RunRecord>>& records);
    void read_again(Session& session);

    std::filesystem::path output_;
    std::function<void(const std::string&, bool)> notice_;
    std::shared_ptr<const engine::Model> model_;
    int document_ = -1;
    std::vector<int> shown_;  ///< numbers of the runs that are pending, in their order
    std::vector<std::string> labels_;

    mutable std::mutex mutex_;
    std::vector<std::pair<int, trace::RunRecord>> arrived_;
    std::vector<std::vector<int32_t>> answers_;  ///< by run
};

}  // namespace kvscope::gui
