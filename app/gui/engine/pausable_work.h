#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace kvscope::gui {

/// Work on its own thread that can be paused. A paused thread blocks and keeps its data.
class PausableWork {
 public:
    /// @param work throws Stopped after pause() has returned false
    explicit PausableWork(std::function<void()> work);
    ~PausableWork();
    PausableWork(const PausableWork&) = delete;
    PausableWork& operator=(const PausableWork&) = delete;

    /// Starts or continues the work and blocks until the work ends or pauses. Returns whether the work has ended.
    [[nodiscard]] bool advance();

    /// Called by the work. Blocks until advance() is called. Returns false if the work should end instead.
    [[nodiscard]] bool pause();

 private:
    enum class State { waiting, working, ended };

    void run();

    std::function<void()> work_;
    std::mutex mutex_;
    std::condition_variable changed_;
    State state_ = State::waiting;
    bool is_to_end_ = false;
    std::exception_ptr failure_;  ///< exception thrown by the work
    std::thread thread_;          ///< started by the first advance()
};

}  // namespace kvscope::gui
