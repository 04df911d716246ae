#pragma once

#include <functional>
#include <string>

#include "app/gui/session/engine_session.h"
#include "engine/common/progress.h"
#include "engine/echo_losses.h"
#include "engine/model/model.h"

namespace kvscope::gui {

/// The last training as the window shows it.
class TrainingInWindow {
 public:
    // The window's thread.
    const TrainingStatus& status() const { return status_; }
    /// Of another one there is nothing to be seen any more.
    void begin(const TrainingRequest& request);
    void fail(const std::string& why) { status_.error = why; }

    /// The engine's thread. @param post hands something to the window's thread @throws as program::train
    void run(const engine::Model& model, const TrainingRequest& request, engine::Progress& progress,
             const std::function<void(std::function<void()>)>& post);

 private:
    TrainingStatus::Stage& stage_of(engine::EchoLoss loss);

    TrainingStatus status_;
};

}  // namespace kvscope::gui
