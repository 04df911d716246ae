#include "app/gui/engine/pausable_work.h"

#include <utility>

#include "engine/common/work_clock.h"

namespace kvscope::gui {

PausableWork::PausableWork(std::function<void()> work) : work_(std::move(work)) {}

PausableWork::~PausableWork() {
    {
        const std::lock_guard lock(mutex_);
        is_to_end_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

bool PausableWork::advance() {
    {
        std::unique_lock lock(mutex_);
        state_ = State::working;
        if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
        changed_.notify_all();
        changed_.wait(lock, [this] { return state_ != State::working; });
        if (state_ == State::waiting) return false;
    }
    thread_.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return true;
}

bool PausableWork::pause() {
    std::unique_lock lock(mutex_);
    if (is_to_end_) return false;
    const engine::WorkPause pause;
    state_ = State::waiting;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ == State::working || is_to_end_; });
    return !is_to_end_;
}

void PausableWork::run() {
    try {
        work_();
    } catch (...) {
        failure_ = std::current_exception();
    }
    work_ = nullptr;  // free the work's data before its end becomes visible
    const std::lock_guard lock(mutex_);
    state_ = State::ended;
    changed_.notify_all();
}

}  // namespace kvscope::gui
