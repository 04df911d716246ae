#include "app/gui/session/tasks.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

namespace kvscope::gui {
namespace {

using Clock = std::chrono::steady_clock;

/// Outdated computations are stopped after this time. Faster computations finish and show results while a slider moves.
constexpr auto patience = std::chrono::milliseconds(250);
constexpr uint64_t frames_missed = 2;  // a view may miss one frame while it is docked

using Compute = std::function<std::shared_ptr<const void>(const std::stop_token&)>;

struct Once {
    std::function<std::string()> work;
    Notice ended;
    std::string said{};
    bool is_error = false;
};

using Name = std::pair<uint64_t, std::string>;

struct Entry {
    std::weak_ptr<const uint64_t> slot;
    std::string wanted;
    std::string finished;
    std::string under_way;  ///< stamp of the running computation
    bool has_finished = false;
    bool running = false;
    Clock::time_point began{};
    std::stop_source stop{std::nostopstate};  ///< stops the running computation
    Compute compute;
    std::shared_ptr<const void> value;
    std::string error;
    uint64_t asked = 0;                           ///< frame of the last request
    std::optional<Clock::time_point> unwanted{};  ///< when frames stopped requesting it

    bool is_running(const std::string& stamp) const { return running && under_way == stamp && !stop.stop_requested(); }
    bool is_finished(const std::string& stamp) const { return has_finished && finished == stamp; }
};

}  // namespace

struct Tasks::Impl {
    std::function<void()> on_done;
    Seconds kept{};
    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    std::map<Name, Entry> entries;
    std::deque<Name> queue;
    std::vector<std::thread> threads;
    std::deque<Once> asked_once, ended_once;
    bool is_running_once = false;
    uint64_t frame = 0;
    int n_running = 0;
    bool stopping = false;

    bool is_idle() const { return queue.empty() && n_running == 0 && asked_once.empty() && !is_running_once; }

    void work_once() {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return stopping || !asked_once.empty(); });
            if (asked_once.empty()) return;
            Once one = std::move(asked_once.front());
            asked_once.pop_front();
            is_running_once = true;
            lock.unlock();
            try {
                one.said = one.work();
            } catch (const std::exception& failure) {
                one.said = failure.what();
                one.is_error = true;
            }
            one.work = {};
            lock.lock();
            is_running_once = false;
            ended_once.push_back(std::move(one));
            changed.notify_all();
            lock.unlock();
            on_done();
            lock.lock();
        }
    }

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return stopping || !queue.empty(); });
            if (stopping) return;
            const Name name = queue.front();
            queue.pop_front();
            const auto found = entries.find(name);
            if (found != entries.end() && !found->second.running && found->second.compute)
                run(name, found->second, lock);
            changed.notify_all();  // also wakes wait()
        }
    }

    /// A running entry is not erased, so the reference stays valid while the lock is released.
    void run(const Name& name, Entry& entry, std::unique_lock<std::mutex>& lock) {
        entry.running = true;
        entry.stop = std::stop_source();
        entry.began = Clock::now();
        entry.under_way = entry.wanted;
        ++n_running;
        Compute compute = std::exchange(entry.compute, {});
        lock.unlock();
        std::shared_ptr<const void> value;
        std::string error;
        try {
            value = compute(entry.stop.get_token());
        } catch (const std::exception& failure) {
            error = failure.what();
        }
        compute = {};  // without the lock, because this may close a trace
        lock.lock();
        entry.running = false;
        --n_running;
        if (!entry.stop.stop_requested() && !entry.is_finished(entry.wanted)) {
            entry.finished = entry.under_way;
            entry.has_finished = true;
            entry.value = std::move(value);
            entry.error = std::move(error);
        }
        if (entry.compute) queue.push_back(name);
        lock.unlock();
        value.reset();
        on_done();
        lock.lock();
    }

    bool has_wanted_in_queue() const {
        return std::ranges::any_of(queue, [&](const Name& name) {
            const auto found = entries.find(name);
            return found != entries.end() && found->second.compute && frame - found->second.asked < frames_missed;
        });
    }
};

Tasks::Tasks(std::function<void()> on_done, int n_threads, Seconds kept) : impl_(new Impl) {
    impl_->on_done = std::move(on_done);
    impl_->kept = kept;
    for (int i = 0; i < n_threads; ++i) impl_->threads.emplace_back([this] { impl_->work(); });
    impl_->threads.emplace_back([this] { impl_->work_once(); });
}

Tasks::~Tasks() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
        for (auto& [name, entry] : impl_->entries) entry.stop.request_stop();
    }
    impl_->changed.notify_all();
    for (auto& thread : impl_->threads) thread.join();
}

Tasks::Result Tasks::ask_any(const std::shared_ptr<const uint64_t>& slot, const std::string& key,
                             const std::string& stamp, Compute compute) {
    const std::lock_guard lock(impl_->mutex);
    const Name name{*slot, key};
    Entry& entry = impl_->entries[name];
    entry.slot = slot;
    entry.asked = impl_->frame;
    entry.unwanted.reset();
    if (entry.is_finished(stamp) || entry.is_running(stamp)) {
        entry.compute = {};  // drop the waiting computation of an older stamp
    } else if (!entry.compute || entry.wanted != stamp) {
        if (!entry.running && !entry.compute) impl_->queue.push_back(name);
        entry.compute = std::move(compute);
        impl_->changed.notify_all();
    }
    entry.wanted = stamp;
    if (entry.running && entry.under_way != stamp && Clock::now() - entry.began > patience) entry.stop.request_stop();
    return {entry.value, entry.error, entry.is_finished(stamp)};
}

void Tasks::once(std::function<std::string()> work, Notice ended) {
    const std::lock_guard lock(impl_->mutex);
    impl_->asked_once.push_back({std::move(work), std::move(ended)});
    impl_->changed.notify_all();
}

std::vector<std::string> Tasks::deliver() {
    std::deque<Once> ended;
    {
        const std::lock_guard lock(impl_->mutex);
        ended.swap(impl_->ended_once);
    }
    std::vector<std::string> thrown;
    for (const Once& one : ended) {
        try {
            one.ended(one.said, one.is_error);
        } catch (const std::exception& error) {
            thrown.emplace_back(error.what());
        } catch (...) {
            thrown.emplace_back("a result cannot be shown, for an unknown reason");
        }
    }
    return thrown;
}

std::optional<Tasks::Seconds> Tasks::end_frame() {
    const std::lock_guard lock(impl_->mutex);
    ++impl_->frame;
    const auto now = Clock::now();
    const bool others_wait = impl_->has_wanted_in_queue();
    std::optional<Seconds> next;
    for (auto at = impl_->entries.begin(); at != impl_->entries.end();) {
        Entry& entry = at->second;
        const bool is_wanted = !entry.slot.expired() && impl_->frame - entry.asked <= frames_missed;
        if (!is_wanted && !entry.unwanted) entry.unwanted = now;
        const Seconds left = is_wanted ? impl_->kept : impl_->kept - Seconds(now - *entry.unwanted);
        const bool is_kept = !entry.slot.expired() && left > Seconds(0);
        if (!is_kept || (!is_wanted && others_wait)) {
            entry.compute = {};
            if (entry.running) entry.stop.request_stop();
        }
        if (is_kept && !is_wanted) next = next ? std::min(*next, left) : left;
        at = is_kept || entry.running ? std::next(at) : impl_->entries.erase(at);
    }
    return next;
}

int Tasks::n_pending() const {
    const std::lock_guard lock(impl_->mutex);
    return static_cast<int>(impl_->queue.size() + impl_->asked_once.size()) + impl_->n_running +
           (impl_->is_running_once ? 1 : 0);
}

void Tasks::wait() const {
    std::unique_lock lock(impl_->mutex);
    impl_->changed.wait(lock, [&] { return impl_->is_idle(); });
}

}  // namespace kvscope::gui
