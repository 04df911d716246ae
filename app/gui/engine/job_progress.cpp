#include "app/gui/engine/job_progress.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace kvscope::gui {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

void JobProgress::start(const std::string& what) {
    {
        const std::lock_guard lock(mutex_);
        stop_ = std::stop_source();
        status_.error.clear();
        enter(EngineStatus::State::loading, what);
    }
    on_change_();
}

void JobProgress::go_on(EngineStatus::State state, const std::string& what) {
    {
        const std::lock_guard lock(mutex_);
        kvscope::throw_if_stopped(stop_.get_token());
        enter(state, what);
    }
    on_change_();
}

void JobProgress::resume(const std::string& what, std::string_view phase, int64_t steps, int64_t done) {
    {
        const std::lock_guard lock(mutex_);
        enter(stop_.stop_requested() ? EngineStatus::State::cancelling : EngineStatus::State::running, what);
    }
    begin(phase, steps, "");
    const std::lock_guard lock(mutex_);
    first_step_ = done;
    if (steps > 0) status_.share = static_cast<double>(done) / static_cast<double>(steps);
}

void JobProgress::enter(EngineStatus::State state, const std::string& what) {
    status_.state = state;
    status_.what = what;
    status_.phase.clear();
    status_.share = 0;
    status_.seconds_left = -1;
}

void JobProgress::end(const std::string& error) {
    {
        const std::lock_guard lock(mutex_);
        status_.state = EngineStatus::State::idle;
        status_.phase.clear();
        status_.error = error;
    }
    on_change_();
}

void JobProgress::set_devices(std::vector<engine::DeviceChoice> devices, std::string why_only_cpu) {
    {
        const std::lock_guard lock(mutex_);
        status_.devices = std::move(devices);
        status_.why_only_cpu = std::move(why_only_cpu);
    }
    on_change_();
}

void JobProgress::set_model(const std::string& name, const std::filesystem::path& path, int64_t context_length,
                            const std::string& device) {
    const std::lock_guard lock(mutex_);
    status_.model = name;
    status_.model_path = path;
    status_.context_length = context_length;
    status_.device = device;
}

void JobProgress::set_model_error(const std::string& error, bool is_refused) {
    const std::lock_guard lock(mutex_);
    status_.is_model_refused = is_refused;
    status_.model_error = error;
}

void JobProgress::set_spectra_seconds(double seconds) {
    const std::lock_guard lock(mutex_);
    status_.spectra_seconds = seconds;
}

void JobProgress::set_seconds_left(double seconds) {
    const std::lock_guard lock(mutex_);
    status_.seconds_left = seconds;
}

void JobProgress::begin(std::string_view phase, int64_t steps, std::string_view /*unit*/) {
    {
        const std::lock_guard lock(mutex_);
        status_.phase = phase;
        status_.share = 0;
        status_.seconds_left = -1;
        steps_ = steps;
        first_step_ = 0;
        phase_start_ = Clock::now();
    }
    on_change_();
}

void JobProgress::advance(int64_t done) {
    {
        const std::lock_guard lock(mutex_);
        if (steps_ > 0) status_.share = std::clamp(static_cast<double>(done) / static_cast<double>(steps_), 0.0, 1.0);
        const double elapsed = seconds_since(phase_start_);
        // Estimates from the first half second are unstable.
        if (done > first_step_ && elapsed > 0.5)
            status_.seconds_left = elapsed / static_cast<double>(done - first_step_) *
                                   static_cast<double>(std::max<int64_t>(0, steps_ - done));
    }
    changed();
}

void JobProgress::message(std::string_view text) { spdlog::info("{}", text); }

std::stop_token JobProgress::stop_token() const {
    const std::lock_guard lock(mutex_);
    return stop_.get_token();
}

EngineStatus JobProgress::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

void JobProgress::cancel() {
    const std::lock_guard lock(mutex_);
    if (!status_.busy()) return;
    stop_.request_stop();
    status_.state = EngineStatus::State::cancelling;
}

void JobProgress::changed() {
    if (seconds_since(told_) < 0.1) return;
    told_ = Clock::now();
    on_change_();
}

}  // namespace kvscope::gui
