#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/engine/job_progress.h"

namespace kvscope::gui {

/// Jobs on a thread of their own, one after the other, at a lower priority than the window's, and what they hand to the
/// window's thread. A job that throws ends with a notice and its error in the progress; Cancelled is no error.
class JobQueue {
 public:
    /// @param notice called on the window's thread
    /// @param wake   called on the job's thread: something was posted
    /// @param n_threads that jobs compute with; 0: one a core
    JobQueue(JobProgress& progress, std::function<void(const std::string&, bool is_error)> notice,
             std::function<void()> wake, int n_threads = 0);
    /// Cancels the job under way and waits for it; those that wait are dropped.
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
    /// Those that wait, in the order in which they begin.
    std::vector<WaitingJob> waiting() const;
    /// Of the job under way; busy while one is under way or waits.
    EngineStatus status() const;
    /// Why a job failed; empty where it has not ended, or went well.
    std::string error_of(uint64_t job) const;
    /// Runs what was posted since, in order. What throws is told by `notice`, and the others are run.
    void deliver();

    // The job's thread.
    void post(std::function<void()> act);

 private:
    struct Job {
        uint64_t number = 0;
        std::string what;
        std::function<void()> run;
        std::function<void()> on_dropped;
    };

    void work();
    void attempt(const std::function<void()>& act) const;

    JobProgress& progress_;
    std::function<void(const std::string&, bool)> notice_;
    std::function<void()> wake_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    std::deque<std::function<void()>> posted_;
    uint64_t n_jobs_ = 0;
    uint64_t under_way_ = 0;                  ///< number; 0: none
    std::map<uint64_t, std::string> errors_;  ///< by job
    bool stopping_ = false;
    int n_threads_;
    std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace kvscope::gui
