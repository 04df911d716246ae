#pragma once

#include <functional>
#include <string>
#include <utility>

#include "app/gui/engine/job_progress.h"
#include "engine/common/progress.h"

namespace kvscope::gui {

/// Progress of a run. Once allow() has been called, a run that is canceled pauses instead of ending.
class PausableProgress final : public engine::Progress {
 public:
    /// Blocks until the run continues. Returns false if the run should end. Called on the run's thread.
    /// @param place e.g. "prefill: 12 of 30 layers"; empty before the first phase
    using Pause = std::function<bool(const std::string& place)>;

    PausableProgress(JobProgress& shown, std::string what, Pause pause)
        : shown_(shown), what_(std::move(what)), pause_(std::move(pause)) {}

    [[nodiscard]] const std::string& what() const { return what_; }
    /// @param settle called before each pause; waits until the device has finished its work
    void allow(std::function<void()> settle) { settle_ = std::move(settle); }
    void forbid() { settle_ = nullptr; }
    /// Whether the run was canceled for good while it was paused.
    [[nodiscard]] bool has_ended() const { return has_ended_; }

    void begin(std::string_view phase, int64_t steps, std::string_view unit) override;
    void advance(int64_t done) override;
    void message(std::string_view text) override { shown_.message(text); }
    [[nodiscard]] bool cancelled() const override;
    [[nodiscard]] bool cancelled_without_pause() const override { return has_ended_ || shown_.cancelled(); }

 private:
    [[nodiscard]] std::string place() const;

    JobProgress& shown_;
    std::string what_;
    Pause pause_;
    std::function<void()> settle_;  ///< empty if pausing is not allowed
    mutable bool has_ended_ = false;
    std::string phase_, unit_;
    int64_t steps_ = 0, done_ = 0;
};

}  // namespace kvscope::gui
