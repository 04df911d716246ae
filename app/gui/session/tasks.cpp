#include "app/gui/session/tasks.h"

#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "trace/interruption.h"

namespace kvscope::gui {
namespace {

constexpr uint64_t frames_kept = 240;

using Compute = std::function<std::shared_ptr<const void>()>;

struct Once {
    std::function<std::string()> work;
    std::function<void(const std::string&, bool)> ended;
    std::string said{};
    bool is_error = false;
};

/// A slot's number, and a key of it.
using Name = std::pair<uint64_t, std::string>;

struct Entry {
    std::weak_ptr<const uint64_t> slot;
    std::string wanted;
    std::string finished;
    bool has_finished = false;
    bool running = false;
    std::stop_source stop{std::nostopstate};  ///< of what runs
    Compute compute;
    std::shared_ptr<const void> value;
    std::string error;
    uint64_t asked = 0;
};

}  // namespace

struct Tasks::Impl {
    std::function<void()> on_done;
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
            changed.notify_all();  // also whoever waits for an empty queue
        }
    }

    /// What runs is not dropped, so that the entry stays where it is while the lock is not held.
    void run(const Name& name, Entry& entry, std::unique_lock<std::mutex>& lock) {
        entry.running = true;
        entry.stop = std::stop_source();
        ++n_running;
        const std::string stamp = entry.wanted;
        Compute compute = std::exchange(entry.compute, {});
        lock.unlock();
        std::shared_ptr<const void> value;
        std::string error;
        try {
            const trace::Interruptible interruptible(entry.stop.get_token());
            value = compute();
        } catch (const std::exception& failure) {
            error = failure.what();
        }
        compute = {};  // may close a trace
        lock.lock();
        entry.running = false;
        --n_running;
        if (!entry.stop.stop_requested()) {
            entry.finished = stamp;
            entry.has_finished = true;
            entry.value = std::move(value);
            entry.error = std::move(error);
        }
        if (entry.compute)
            queue.push_back(name);
        else if (entry.stop.stop_requested())
            entries.erase(name);
        lock.unlock();
        on_done();
        lock.lock();
    }
};

Tasks::Tasks(std::function<void()> on_done, int n_threads) : impl_(new Impl) {
    impl_->on_done = std::move(on_done);
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
    const bool is_under_way = entry.compute || (entry.running && !entry.stop.stop_requested());
    if (entry.wanted != stamp || (!entry.has_finished && !is_under_way)) {
        if (!entry.running && !entry.compute) impl_->queue.push_back(name);
        entry.wanted = stamp;
        entry.compute = std::move(compute);
        impl_->changed.notify_all();
    }
    const bool current = entry.has_finished && entry.finished == stamp;
    return {entry.value, entry.error, current};
}

void Tasks::once(std::function<std::string()> work, std::function<void(const std::string&, bool)> ended) {
    const std::lock_guard lock(impl_->mutex);
    impl_->asked_once.push_back({std::move(work), std::move(ended)});
    impl_->changed.notify_all();
}

void Tasks::deliver() {
    std::deque<Once> ended;
    {
        const std::lock_guard lock(impl_->mutex);
        ended.swap(impl_->ended_once);
    }
    for (const Once& one : ended) one.ended(one.said, one.is_error);
}

void Tasks::end_frame() {
    const std::lock_guard lock(impl_->mutex);
    ++impl_->frame;
    for (auto at = impl_->entries.begin(); at != impl_->entries.end();) {
        Entry& entry = at->second;
        const bool is_wanted = !entry.slot.expired() && impl_->frame - entry.asked <= frames_kept;
        if (!is_wanted) entry.compute = {};
        if (!is_wanted && entry.running) entry.stop.request_stop();
        at = is_wanted || entry.running ? std::next(at) : impl_->entries.erase(at);
    }
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
