#include "app/gui/session/tasks.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

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

struct Slot {
    std::string wanted;
    std::string finished;
    bool has_finished = false;
    bool running = false;
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
    std::unordered_map<std::string, Slot> slots;
    std::deque<std::string> queue;
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
            const std::string name = queue.front();
            queue.pop_front();
            const auto found = slots.find(name);
            if (found == slots.end() || found->second.running || !found->second.compute) {
                changed.notify_all();  // whoever waits for an empty queue
                continue;
            }
            Slot& slot = found->second;
            slot.running = true;
            ++n_running;
            const std::string stamp = slot.wanted;
            const Compute compute = std::move(slot.compute);
            lock.unlock();
            std::shared_ptr<const void> value;
            std::string error;
            try {
                value = compute();
            } catch (const std::exception& failure) {
                error = failure.what();
            }
            lock.lock();
            // A running slot is not dropped, so it is where it was.
            Slot& after = slots.at(name);
            after.running = false;
            --n_running;
            after.finished = stamp;
            after.has_finished = true;
            after.value = std::move(value);
            after.error = std::move(error);
            if (after.wanted != stamp) queue.push_back(name);
            changed.notify_all();
            lock.unlock();
            on_done();
            lock.lock();
        }
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
    }
    impl_->changed.notify_all();
    for (auto& thread : impl_->threads) thread.join();
}

Tasks::Result Tasks::ask_any(const std::string& name, const std::string& stamp, Compute compute) {
    const std::lock_guard lock(impl_->mutex);
    Slot& slot = impl_->slots[name];
    slot.asked = impl_->frame;
    const bool is_new = slot.wanted != stamp || (!slot.has_finished && !slot.running && !slot.compute);
    if (is_new) {
        slot.wanted = stamp;
        slot.compute = std::move(compute);
        if (!slot.running) {
            impl_->queue.push_back(name);
            impl_->changed.notify_all();
        }
    }
    const bool current = slot.has_finished && slot.finished == stamp;
    return {slot.value, slot.error, current};
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
    if (impl_->frame % 60 != 0) return;
    std::erase_if(impl_->slots, [&](const auto& entry) {
        const Slot& slot = entry.second;
        return !slot.running && slot.has_finished && slot.finished == slot.wanted &&
               impl_->frame - slot.asked > frames_kept;
    });
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
