#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "engine/common/progress.h"

namespace kvscope::gui {

class JobProgress final : public engine::Progress {
 public:
    /// @param on_change called on the engine's thread, at most ten times per second
    explicit JobProgress(std::function<void()> on_change) : on_change_(std::move(on_change)) {}

    // Called on the engine's thread:
    void start(const std::string& what);
    /// Starts the next part of the job. Throws Stopped if the job was canceled.
    void go_on(EngineStatus::State state, const std::string& what);
    void resume(const std::string& what, std::string_view phase, int64_t steps, int64_t done);
    void end(const std::string& error);
    void set_model(const std::string& name, const std::filesystem::path& path, int64_t context_length,
                   const std::string& device);
    void set_devices(std::vector<engine::DeviceChoice> devices, std::string why_only_cpu);
    void set_model_error(const std::string& error, bool is_refused);
    void set_spectra_seconds(double seconds);
    void set_seconds_left(double seconds);  ///< of the phase; negative if unknown
    void begin(std::string_view phase, int64_t steps, std::string_view unit) override;
    void advance(int64_t done) override;
    void message(std::string_view text) override;
    [[nodiscard]] std::stop_token stop_token() const override;

    // Called on the UI thread:
    [[nodiscard]] EngineStatus status() const;
    void cancel();

 private:
    void enter(EngineStatus::State state, const std::string& what);
    void changed();

    std::function<void()> on_change_;
    mutable std::mutex mutex_;
    EngineStatus status_;
    int64_t steps_ = 0;
    int64_t first_step_ = 0;  ///< finished steps when the job was resumed
    std::chrono::steady_clock::time_point phase_start_;
    std::chrono::steady_clock::time_point told_;
    std::stop_source stop_;  ///< of the current job
};

}  // namespace kvscope::gui
