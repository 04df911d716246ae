#include "kernels/threads/team.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace kvscope::kernels {

namespace {

const int of_machine = std::min(omp_get_max_threads(), omp_get_num_procs());
thread_local int of_this_thread = 0;
thread_local bool is_in_team = false;

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// Busy-waits until `done` is true or the time is over. Returns whether it became true.
template <class Done>
bool busy_wait(std::chrono::microseconds time, const Done& done) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + time;
    do
        for (int i = 0; i < 32; ++i) {
            if (done()) return true;
            pause();
        }
    while (Clock::now() < end);
    return false;
}

/// Time to busy-wait for the next loop of a decode step. Waking a sleeping thread takes about 50 µs.
constexpr std::chrono::microseconds between_loops{200};
/// Time to busy-wait for the last threads of a team, which other programs may delay.
constexpr std::chrono::microseconds for_the_last{50};

class Team {
 public:
    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team() {
        is_ending_.store(true, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }

    void run(int n, void (*call)(void*, int), void* context) {
        grow(n - 1);
        n_members_ = n;
        call_ = call;
        context_ = context;
        inside_.store(0, std::memory_order_release);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        is_in_team = true;
        take_part(0);
        is_in_team = false;
        inside_.fetch_add(closed, std::memory_order_acq_rel);
        wait_for_all();
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

 private:
    static constexpr int32_t closed = std::numeric_limits<int32_t>::min() / 2;

    /// Calls `call_` and keeps its exception, which reaches the caller after all members have left.
    void take_part(int member) noexcept {
        try {
            call_(context_, member);
        } catch (...) {
            const std::lock_guard lock(failing_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    void wait_for_all() {
        const auto are_out = [&] { return inside_.load(std::memory_order_acquire) == closed; };
        if (are_out() || busy_wait(for_the_last, are_out)) return;
        for (int32_t inside = inside_.load(std::memory_order_acquire); inside != closed;
             inside = inside_.load(std::memory_order_acquire))
            inside_.wait(inside, std::memory_order_acquire);
    }

    /// Blocks the signals that ask the program to end. The program's own threads handle these signals.
    class SignalsBlocked {
     public:
        SignalsBlocked() {
            sigset_t signals{};
            sigemptyset(&signals);
            for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM}) sigaddset(&signals, signal);
            pthread_sigmask(SIG_BLOCK, &signals, &before_);
        }
        SignalsBlocked(const SignalsBlocked&) = delete;
        SignalsBlocked& operator=(const SignalsBlocked&) = delete;
        ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

     private:
        sigset_t before_{};
    };

    void grow(int n_workers) {
        if (static_cast<int>(workers_.size()) >= n_workers) return;
        const SignalsBlocked blocked;  // new threads inherit the signal mask
        while (static_cast<int>(workers_.size()) < n_workers) {
            const int member = static_cast<int>(workers_.size()) + 1;
            try {
                workers_.emplace_back([this, member] { work(member); });
            } catch (const std::system_error&) {
                return;  // the existing threads do the work
            }
        }
    }

    void work(int member) {
        is_in_team = true;
        for (uint32_t seen = 0; !is_ending_.load(std::memory_order_relaxed);) {
            const auto has_begun = [&] { return round_.load(std::memory_order_acquire) != seen; };
            if (!busy_wait(between_loops, has_begun)) round_.wait(seen, std::memory_order_acquire);
            seen = round_.load(std::memory_order_acquire);
            if (enter()) {
                if (member < n_members_) take_part(member);
                if (inside_.fetch_sub(1, std::memory_order_acq_rel) - 1 == closed) inside_.notify_one();
            }
        }
    }

    /// Returns whether this member joined before the work was done.
    bool enter() {
        int32_t inside = inside_.load(std::memory_order_acquire);
        while (inside >= 0)
            if (inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acq_rel)) return true;
        return false;
    }

    alignas(64) std::atomic<uint32_t> round_{0};
    alignas(64) std::atomic<int32_t> inside_{closed};  ///< working members except 0, plus `closed` at the end
    std::atomic<bool> is_ending_{false};
    int n_members_ = 0;
    void (*call_)(void*, int) = nullptr;
    void* context_ = nullptr;
    std::mutex failing_;
    std::exception_ptr failure_;  ///< first exception of a call
    std::vector<std::thread> workers_;
};

}  // namespace

int threads() { return of_this_thread > 0 ? of_this_thread : of_machine; }

void set_threads(int n) { of_this_thread = n; }

void run_team(int n_threads, void (*call)(void* context, int member), void* context) {
    if (n_threads <= 1 || is_in_team) return call(context, 0);
    thread_local std::unique_ptr<Team> team = std::make_unique<Team>();
    team->run(n_threads, call, context);
}

}  // namespace kvscope::kernels
