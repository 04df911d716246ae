#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
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
    /// Names the part of the run in all phases that begin later, e.g. "prompt 3/12".
    /// @param seconds_left of all parts from now on; negative if unknown. The time of each phase is then shown instead.
    void begin_part(std::string part, double seconds_left);
    /// Whether the run was canceled for good while it was paused.
    [[nodiscard]] bool has_ended() const { return ended_.stop_requested(); }

    void begin(std::string_view phase, int64_t steps, std::string_view unit) override;
    void advance(int64_t done) override;
    void message(std::string_view text) override { shown_.message(text); }
    [[nodiscard]] std::stop_token stop_token() const override {
        return has_ended() ? ended_.get_token() : shown_.stop_token();
    }
    void throw_if_stopped() const override;

 private:
    [[nodiscard]] std::string place() const;
    void show_seconds_left();

    JobProgress& shown_;
    std::string what_;
    std::string part_;
    std::optional<std::chrono::steady_clock::time_point> end_;  ///< estimated end of the run
    Pause pause_;
    std::function<void()> settle_;  ///< empty if pausing is not allowed
    mutable std::stop_source ended_;
    std::string phase_, unit_;
    int64_t steps_ = 0, done_ = 0;
};

/// Progress of a benchmark task. Shows one step per sample instead of the phases of each sample.
class SampleProgress final : public engine::Progress {
 public:
    SampleProgress(PausableProgress& task, JobProgress& shown) : task_(task), shown_(shown) {}

    void show(size_t sample, size_t n_samples) {
        task_.begin(fmt::format("sample {} of {}", sample + 1, n_samples), static_cast<int64_t>(n_samples), "");
        task_.advance(static_cast<int64_t>(sample));
        shown_.set_seconds_left(seconds_left_);
    }
    /// @param seconds for all samples after the one in progress
    void set_seconds_left(double seconds) { seconds_left_ = seconds; }

    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view text) override { task_.message(text); }
    [[nodiscard]] std::stop_token stop_token() const override { return task_.stop_token(); }
    void throw_if_stopped() const override { task_.throw_if_stopped(); }

 private:
    PausableProgress& task_;
    JobProgress& shown_;
    double seconds_left_ = -1;
};

}  // namespace kvscope::gui
