#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace kvscope::gui {

/// Work on a thread of its own that can be paused. The thread then waits with everything that it has computed.
class PausableWork {
 public:
    /// @param work throws engine::Cancelled after `pause` has returned false
    explicit PausableWork(std::function<void()> work);
    /// Ends work that is paused and waits until its thread has ended.
    ~PausableWork();
    PausableWork(const PausableWork&) = delete;
    PausableWork& operator=(const PausableWork&) = delete;

    /// Begins or continues the work and waits until it ends or pauses.
    /// @returns whether it has ended @throws what the work throws
    bool advance();

    /// Called by the work itself: waits for `advance`. @returns false where the work is to end instead
    bool pause();

 private:
    enum class State { waiting, working, ended };

    void run();

    std::function<void()> work_;
    std::mutex mutex_;
    std::condition_variable changed_;
    State state_ = State::waiting;
    bool is_to_end_ = false;
    std::exception_ptr failure_;  ///< what the work threw
    std::thread thread_;          ///< begins with the first `advance`
};

}  // namespace kvscope::gui
