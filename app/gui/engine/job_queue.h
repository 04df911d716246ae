#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/engine/job_progress.h"
#include "app/gui/engine/pausable_work.h"

namespace kvscope::gui {

/// Jobs, one after the other, each on a thread of its own at a lower priority than the window's, and what they hand to
/// the window's thread. A job that throws ends with a notice and its error in the progress; Cancelled is no error. A
/// job that is cancelled can pause: it leaves the queue, keeps what it has computed, and continues when it is asked to.
class JobQueue {
 public:
    /// @param notice called on the window's thread
    /// @param wake   called on the job's thread: something was posted
    /// @param n_threads that jobs compute with; 0: one a core
    JobQueue(JobProgress& progress, std::function<void(const std::string&, bool is_error)> notice,
             std::function<void()> wake, int n_threads = 0);
    /// Cancels the job under way and waits for it; those that wait or are paused are dropped.
    ~JobQueue();
    JobQueue(const JobQueue&) = delete;
    JobQueue& operator=(const JobQueue&) = delete;

    // The window's thread.
    /// @param on_dropped called on the window's thread where the job is cancelled before it begins; may be empty
    /// @returns the job's number
    uint64_t enqueue(std::string what, std::function<void()> run, std::function<void()> on_dropped = nullptr);
    /// Ends the job under way at the next safe place, or drops the next one where none has begun. Others stay.
    void cancel();
    /// Takes a job out of the queue and calls its `on_dropped`. @returns false where the job has begun or ended
    bool drop(uint64_t job);
    /// Whether a job waits or is under way.
    bool has(uint64_t job) const;
    /// Puts a paused job at the end of the queue. It keeps its number.
    /// @param on_dropped as in enqueue(); the job is paused again by then
    /// @param on_ended called on the window's thread where end_paused() ends it before its turn
    /// @returns false where no such job is paused
    bool go_on(uint64_t job, std::function<void()> on_dropped, std::function<void()> on_ended);
    /// Ends a paused job, so that what it holds is free. Nothing happens where no such job is paused.
    void end_paused(uint64_t job);
    /// Those that wait, in the order in which they begin.
    std::vector<WaitingJob> waiting() const;
    /// Of the job under way; busy while one is under way or waits.
    EngineStatus status() const;
    /// Why a job failed; empty where it has not ended, or went well.
    std::string error_of(uint64_t job) const;
    /// Runs what was posted since, in order. What throws is told by `notice`, and the others are run.
    void deliver();

    // Any thread.
    /// The same for all that are paused, and for those among them that wait in the queue again.
    void end_paused();

    // The job's thread.
    /// Waits until the job is to continue; other jobs run meanwhile.
    /// @param on_paused called on the window's thread once the job is paused, with its number
    /// @returns false where the job is to end with engine::Cancelled
    bool pause(std::function<void(uint64_t job)> on_paused);
    void post(std::function<void()> act);

 private:
    struct Job {
        uint64_t number = 0;
        std::string what;
        std::function<void()> run;
        std::function<void()> on_dropped;
        std::function<void()> on_ended{};
        std::unique_ptr<PausableWork> work{};  ///< of a job that has begun
    };

    void work();
    std::unique_ptr<PausableWork> work_of(Job& job);
    /// Takes a job out of a list, with the lock held. @returns a job without number where it is not there
    static Job take(std::deque<Job>& jobs, uint64_t number);
    void attempt(const std::function<void()>& act) const;

    JobProgress& progress_;
    std::function<void(const std::string&, bool)> notice_;
    std::function<void()> wake_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    std::deque<Job> paused_;
    std::deque<std::function<void()>> posted_;
    uint64_t n_jobs_ = 0;
    uint64_t under_way_ = 0;                  ///< number; 0: none
    PausableWork* work_under_way_ = nullptr;  ///< of that job
    std::function<void(uint64_t)> on_paused_;
    std::map<uint64_t, std::string> errors_;  ///< by job
    bool stopping_ = false;
    int n_threads_;
    std::thread thread_;  ///< starts each job's thread and waits for it; last: it uses all of the above
};

}  // namespace kvscope::gui
