#pragma once

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "trace/hdf5/hdf5.h"

namespace kvscope::gui::testing {

/// While this exists, another thread reads a trace, so that other readers have to wait. It ends after a time in which
/// many frames are drawn, so that a test of a waiting app also ends.
class BusyDisk {
 public:
    BusyDisk() : reader_([this] { read(); }) { begun_.get_future().wait(); }
    BusyDisk(const BusyDisk&) = delete;
    BusyDisk& operator=(const BusyDisk&) = delete;
    ~BusyDisk() { end(); }

    /// Lets other readers continue. Returns whether the thread was still reading.
    bool end() {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        if (reader_.joinable()) reader_.join();
        return !gave_up_;
    }

 private:
    void read() {
        const trace::h5::Guard guard;
        begun_.set_value();
        std::unique_lock lock(mutex_);
        gave_up_ = !changed_.wait_for(lock, std::chrono::seconds(5), [this] { return ended_; });
    }

    std::promise<void> begun_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    bool gave_up_ = false;
    std::thread reader_;  ///< last, because it uses all members above
};

}  // namespace kvscope::gui::testing
