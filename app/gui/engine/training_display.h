#pragma once

#include <functional>
#include <string>

#include "app/gui/session/engine_session.h"
#include "engine/common/progress.h"
#include "engine/echo/echokv_tuning_losses.h"
#include "engine/model/model.h"

namespace kvscope::gui {

class TrainingDisplay {
 public:
    // Called on the UI thread:
    [[nodiscard]] const TrainingStatus& status() const { return status_; }
    void begin(const TrainingRequest& request);
    void fail(const std::string& why) { status_.error = why; }

    /// Called on the engine's thread. Throws the exceptions of program::train_echo_maps.
    /// @param post passes a function to the UI thread
    void run(const engine::Model& model, const TrainingRequest& request, engine::Progress& progress,
             const std::function<void(std::function<void()>)>& post);

 private:
    [[nodiscard]] TrainingStatus::Stage& stage_of(engine::EchoLoss loss);

    TrainingStatus status_;
};

}  // namespace kvscope::gui
