#include "app/gui/engine/job_queue.h"

#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "common/stopped.h"
#include "engine/common/work_clock.h"
#include "kernels/threads/team.h"

namespace kvscope::gui {

namespace {

/// Priority of the jobs' threads, lower than the priority of the UI thread.
constexpr int niceness = 5;

}  // namespace

JobQueue::JobQueue(JobProgress& progress, Notice notice, std::function<void()> wake, int n_threads)
    : progress_(progress), notice_(std::move(notice)), wake_(std::move(wake)), n_threads_(n_threads), thread_([this] {
          work();
      }) {}

JobQueue::~JobQueue() {
    std::deque<Job> dropped;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        dropped.swap(jobs_);
    }
    progress_.cancel();
    changed_.notify_all();
    thread_.join();
    dropped.clear();  // without the lock, because paused jobs call post() while they end
    end_paused();
}

uint64_t JobQueue::enqueue(std::string what, std::function<void()> run, std::function<void()> on_dropped) {
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = ++n_jobs_;
        jobs_.push_back({number, std::move(what), std::move(run), std::move(on_dropped)});
    }
    changed_.notify_all();
    return number;
}

void JobQueue::cancel() {
    uint64_t next = 0;  // a job that was just added has not started yet
    {
        const std::lock_guard lock(mutex_);
        // The lock is held, so that no other job starts meanwhile.
        if (under_way_ != 0) return progress_.cancel();
        if (!jobs_.empty()) next = jobs_.front().number;
    }
    if (!drop(next)) progress_.cancel();  // the job has started meanwhile
}

bool JobQueue::drop(uint64_t number) {
    std::function<void()> on_dropped;
    Job dropped;
    {
        const std::lock_guard lock(mutex_);
        dropped = take(jobs_, number);
        if (dropped.number == 0) return false;
        on_dropped = std::move(dropped.on_dropped);
        if (dropped.work) paused_.push_back(std::move(dropped));
    }
    if (on_dropped) attempt(on_dropped);
    return true;
}

bool JobQueue::go_on(uint64_t number, std::function<void()> on_dropped, std::function<void()> on_ended) {
    {
        const std::lock_guard lock(mutex_);
        Job job = take(paused_, number);
        if (job.number == 0) return false;
        job.on_dropped = std::move(on_dropped);
        job.on_ended = std::move(on_ended);
        jobs_.push_back(std::move(job));
    }
    changed_.notify_all();
    return true;
}

void JobQueue::end_paused(uint64_t number) {
    Job ended;  // destroyed after the lock is released, because the job calls post() while it ends
    const std::lock_guard lock(mutex_);
    ended = take(paused_, number);
}

void JobQueue::end_paused() {
    std::deque<Job> ended, waiting;
    {
        const std::lock_guard lock(mutex_);
        ended.swap(paused_);
        const auto first = std::stable_partition(jobs_.begin(), jobs_.end(), [](const Job& job) { return !job.work; });
        std::move(first, jobs_.end(), std::back_inserter(waiting));
        jobs_.erase(first, jobs_.end());
    }
    // The lock is released, because the jobs call post() while they end.
    ended.clear();
    for (Job& job : waiting) {
        job.work.reset();
        if (job.on_ended) post(job.on_ended);
    }
}

JobQueue::Job JobQueue::take(std::deque<Job>& jobs, uint64_t number) {
    const auto found = std::ranges::find_if(jobs, [&](const Job& job) { return job.number == number; });
    if (found == jobs.end()) return {};
    Job job = std::move(*found);
    jobs.erase(found);
    return job;
}

bool JobQueue::has(uint64_t number) const {
    const std::lock_guard lock(mutex_);
    return (number != 0 && number == under_way_) ||
           std::ranges::any_of(jobs_, [&](const Job& job) { return job.number == number; });
}

std::vector<WaitingJob> JobQueue::waiting() const {
    const std::lock_guard lock(mutex_);
    std::vector<WaitingJob> all;
    for (const Job& job : jobs_) all.push_back({job.number, job.what});
    return all;
}

std::string JobQueue::error_of(uint64_t job) const {
    const std::lock_guard lock(mutex_);
    const auto found = errors_.find(job);
    return found == errors_.end() ? "" : found->second;
}

EngineStatus JobQueue::status() const {
    bool has_jobs = false;
    {
        // Read the queue before progress_, because progress_ already knows each job that has left the queue.
        const std::lock_guard lock(mutex_);
        has_jobs = under_way_ != 0 || !jobs_.empty();
    }
    EngineStatus now = progress_.status();
    if (!now.busy() && has_jobs) now.state = EngineStatus::State::loading;
    return now;
}

void JobQueue::deliver() {
    std::deque<std::function<void()>> posted;
    {
        const std::lock_guard lock(mutex_);
        posted.swap(posted_);
    }
    for (const auto& act : posted) attempt(act);
}

bool JobQueue::attempt(const std::function<void()>& act) const {
    try {
        act();
        return true;
    } catch (const std::exception& error) {
        notice_(error.what(), true);
    } catch (...) {
        notice_("a result of the engine cannot be shown, for an unknown reason", true);
    }
    return false;
}

void JobQueue::post(std::function<void()> act) {
    {
        const std::lock_guard lock(mutex_);
        posted_.push_back(std::move(act));
    }
    wake_();
}

bool JobQueue::pause(std::function<void(uint64_t)> on_paused) {
    PausableWork* work = nullptr;
    {
        const std::lock_guard lock(mutex_);
        on_paused_ = std::move(on_paused);
        work = work_under_way_;
    }
    return work->pause();
}

std::unique_ptr<PausableWork> JobQueue::work_of(Job& job) {
    return std::make_unique<PausableWork>([this, run = std::exchange(job.run, nullptr)] {
        setpriority(PRIO_PROCESS, 0, niceness);                // affects only this thread on Linux
        if (n_threads_ > 0) kernels::set_threads(n_threads_);  // affects only this thread
        run();
    });
}

void JobQueue::work() {
    for (;;) {
        Job job;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
            if (stopping_) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
            job.on_dropped = job.on_ended = nullptr;
            if (!job.work) job.work = work_of(job);
            under_way_ = job.number;
            work_under_way_ = job.work.get();
            progress_.start(job.what);
        }
        std::string failure;
        bool has_ended = true;
        try {
            has_ended = job.work->advance();
        } catch (const Stopped&) {
            post([this, what = job.what] { notice_("stopped: " + what, false); });
        } catch (const std::bad_alloc&) {
            failure = job.what + ": out of memory: use a shorter prompt, fewer runs at once or a smaller window";
        } catch (const std::exception& error) {
            failure = error.what();
        }
        std::function<void()> then;
        {
            const std::lock_guard lock(mutex_);
            if (!failure.empty()) errors_[job.number] = failure;
            work_under_way_ = nullptr;
            if (!has_ended) {
                then = [on_paused = std::move(on_paused_), number = job.number] { on_paused(number); };
                paused_.push_back(std::move(job));
            }
        }
        if (!failure.empty()) then = [this, failure] { notice_(failure, true); };
        if (then) post(then);
        progress_.end(failure);
        {
            const std::lock_guard lock(mutex_);
            under_way_ = 0;  // last, so that a late cancel() does not drop the next job
        }
        wake_();
    }
}

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
