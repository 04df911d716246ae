#include "app/gui/engine/pausable_progress.h"

#include <algorithm>

namespace kvscope::gui {

std::string PausableProgress::place() const {
    return unit_.empty() ? phase_ : fmt::format("{}: {} of {} {}", phase_, done_, steps_, unit_);
}

void PausableProgress::begin(std::string_view phase, int64_t steps, std::string_view unit) {
    phase_ = part_.empty() ? std::string(phase) : fmt::format("{}: {}", part_, phase);
    unit_ = unit;
    steps_ = steps;
    done_ = 0;
    shown_.begin(phase_, steps, unit);
    show_seconds_left();
}

void PausableProgress::advance(int64_t done) {
    done_ = done;
    shown_.advance(done);
    show_seconds_left();
}

void PausableProgress::begin_part(std::string part, double seconds_left) {
    using namespace std::chrono;
    part_ = std::move(part);
    end_.reset();
    if (seconds_left >= 0) end_ = steady_clock::now() + duration_cast<nanoseconds>(duration<double>(seconds_left));
}

void PausableProgress::show_seconds_left() {
    if (!end_) return;
    const std::chrono::duration<double> left = *end_ - std::chrono::steady_clock::now();
    shown_.set_seconds_left(std::max(left.count(), 0.0));
}

void PausableProgress::throw_if_stopped() const {
    while (stop_token().stop_requested()) {
        if (has_ended() || !settle_) throw Stopped();
        settle_();
        if (pause_(place()))
            shown_.resume(what_, phase_, steps_, done_);
        else
            ended_.request_stop();
    }
}

}  // namespace kvscope::gui
