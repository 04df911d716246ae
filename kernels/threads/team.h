#pragma once

#include <atomic>
#include <cstdint>

namespace kvscope::kernels {

inline constexpr int most_threads = 1024;

/// Returns how many threads the caller's loops use. Default: one per processor, or OMP_NUM_THREADS if lower.
[[nodiscard]] int threads();
void set_threads(int n);

/// Sets the number of threads during its lifetime, through the given getter and setter.
template <int (*get)(), void (*set)(int)>
class ThreadsOf {
 public:
    explicit ThreadsOf(int n) : before_(get()) { set(n); }
    ~ThreadsOf() { set(before_); }
    ThreadsOf(const ThreadsOf&) = delete;
    ThreadsOf& operator=(const ThreadsOf&) = delete;

 private:
    int before_;
};
using Threads = ThreadsOf<&threads, &set_threads>;

/// Calls call(context, 0) on this thread and call(context, member) on up to n_threads - 1 other threads of its team,
/// and returns when the work is done. Late members are skipped, and a member may be called more than once, so calls
/// must divide the work among themselves. At the end, throws the first exception. Nested calls use only this thread.
void run_team(int n_threads, void (*call)(void* context, int member), void* context);

template <class Body>
void run_on_thread_team(int n_threads, const Body& body) {
    run_team(
        n_threads, [](void* context, int member) { (*static_cast<const Body*>(context))(member); },
        const_cast<void*>(static_cast<const void*>(&body)));  // NOLINT(*-const-cast): the call casts it back
}

/// Calls body(begin, end, member) for all of [0, n), in parts of `together` elements.
template <class Body>
void over_parts(int n_threads, int64_t n, int64_t together, const Body& body) {
    if (n_threads <= 1 || n <= together) {
        if (n > 0) body(0, n, 0);
        return;
    }
    std::atomic<int64_t> unclaimed{0};
    run_on_thread_team(n_threads, [&](int member) {
        for (int64_t begin = unclaimed.fetch_add(together); begin < n; begin = unclaimed.fetch_add(together))
            body(begin, begin + together < n ? begin + together : n, member);
    });
}

}  // namespace kvscope::kernels
