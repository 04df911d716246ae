#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/engine/job_progress.h"

namespace kvscope::gui {

/// Work on its own thread that can be paused. A paused thread blocks and keeps its data.
class PausableWork {
 public:
    /// @param work must call pause() regularly, and throw Stopped when pause() returns false
    explicit PausableWork(std::function<void()> work);
    ~PausableWork();

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

/// Runs jobs one after the other, each on its own thread with lower priority than the UI thread. Exceptions of jobs are
/// shown as notices. A canceled job can pause: it leaves the queue, keeps its results and can be continued later.
class JobQueue {
 public:
    /// @param notice called on the UI thread
    /// @param wake called on the job's thread after post()
    /// @param n_threads threads per job; 0: one per core
    JobQueue(JobProgress& progress, Notice notice, std::function<void()> wake, int n_threads = 0);
    /// Cancels the current job, waits for its end, and drops waiting and paused jobs.
    ~JobQueue();

    // Called on the UI thread:
    /// Adds a job and returns its number. `on_dropped` is called if the job is dropped before it starts.
    uint64_t enqueue(std::string what, std::function<void()> run, std::function<void()> on_dropped = nullptr);
    /// Cancels the current job at the next safe point. If no job runs, drops the next one.
    void cancel();
    /// Removes a waiting job and calls its `on_dropped`. Returns false if the job has started or ended.
    bool drop(uint64_t job);
    [[nodiscard]] bool has(uint64_t job) const;
    /// Puts a paused job at the end of the queue under the same number. Returns false if the job is not paused.
    /// @param on_dropped see enqueue(); the job is then paused again
    /// @param on_ended called on the UI thread if end_paused() ends the job before its turn
    [[nodiscard]] bool go_on(uint64_t job, std::function<void()> on_dropped, std::function<void()> on_ended);
    void end_paused(uint64_t job);
    [[nodiscard]] std::vector<WaitingJob> waiting() const;
    [[nodiscard]] EngineStatus status() const;
    [[nodiscard]] std::string error_of(uint64_t job) const;
    /// Calls the posted functions in order. Reports exceptions as notices and continues.
    void deliver();

    /// Calls a function and reports its exception as a notice. Returns whether the function has ended normally.
    bool attempt(const std::function<void()>& act) const;

    // Called on any thread:
    /// Ends all paused jobs, including those that wait to continue.
    void end_paused();

    // Called on the job's thread:
    /// Blocks until the job is continued. Returns false if the job should throw Stopped.
    /// @param on_paused called on the UI thread with the job's number once it has paused
    [[nodiscard]] bool pause(std::function<void(uint64_t job)> on_paused);
    void post(std::function<void()> act);

 private:
    struct Job {
        uint64_t number = 0;
        std::string what;
        std::function<void()> run;
        std::function<void()> on_dropped;
        std::function<void()> on_ended{};
        std::unique_ptr<PausableWork> work{};  ///< set once the job has started
    };

    void work();
    [[nodiscard]] std::unique_ptr<PausableWork> work_of(Job& job);
    /// Removes and returns a job, or a job with number 0 if there is none. The caller must hold the lock.
    [[nodiscard]] static Job take(std::deque<Job>& jobs, uint64_t number);

    JobProgress& progress_;
    Notice notice_;
    std::function<void()> wake_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    std::deque<Job> paused_;
    std::deque<std::function<void()>> posted_;
    uint64_t n_jobs_ = 0;
    uint64_t under_way_ = 0;                  ///< number of the current job; 0: none
    PausableWork* work_under_way_ = nullptr;  ///< work of the current job
    std::function<void(uint64_t)> on_paused_;
    std::map<uint64_t, std::string> errors_;  ///< by job number
    bool stopping_ = false;
    int n_threads_;
    std::thread thread_;  ///< starts and joins the threads of jobs; last member because it uses the others
};

}  // namespace kvscope::gui
