#include "app/gui/engine/pausable_progress.h"

namespace kvscope::gui {

std::string PausableProgress::place() const {
    return unit_.empty() ? phase_ : fmt::format("{}: {} of {} {}", phase_, done_, steps_, unit_);
}

void PausableProgress::begin(std::string_view phase, int64_t steps, std::string_view unit) {
    phase_ = phase;
    unit_ = unit;
    steps_ = steps;
    done_ = 0;
    shown_.begin(phase, steps, unit);
}

void PausableProgress::advance(int64_t done) {
    done_ = done;
    shown_.advance(done);
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
