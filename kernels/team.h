#pragma once

#include <atomic>
#include <cstdint>

namespace kvscope::kernels {

inline constexpr int kMostThreads = 1024;

/// Threads on which this thread's loops run, itself among them: at first one for each processor, or those of
/// OMP_NUM_THREADS where these are fewer. With more of them loops only wait.
int threads();
void set_threads(int n);

/// As many threads as given while it lives, of those that a pair of functions like the two above gets and sets.
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

/// Calls call(context, member) on this thread, whose member is 0, and on those of its team's other n_threads - 1 that
/// come before the work is done; a member that comes twice is called twice, one call after the other. Threads that
/// other programs keep from running are not waited for, unless they have begun. The calls share work out among
/// themselves; where some throw, the first of these exceptions is thrown once all have ended. Within a call it runs on
/// the thread that asks alone.
///
/// A thread's team stays until the thread ends. A member that has nothing to do looks out for work for a fraction of a
/// millisecond and sleeps then.
void run_team(int n_threads, void (*call)(void* context, int member), void* context);

template <class Body>
void in_team(int n_threads, const Body& body) {
    run_team(
        n_threads, [](void* context, int member) { (*static_cast<const Body*>(context))(member); },
        const_cast<void*>(static_cast<const void*>(&body)));
}

/// Calls body(begin, end, member) for all of [0, n), `together` at a time.
template <class Body>
void over_parts(int n_threads, int64_t n, int64_t together, const Body& body) {
    if (n_threads <= 1 || n <= together) {
        if (n > 0) body(0, n, 0);
        return;
    }
    std::atomic<int64_t> unclaimed{0};
    in_team(n_threads, [&](int member) {
        for (int64_t begin = unclaimed.fetch_add(together); begin < n; begin = unclaimed.fetch_add(together))
            body(begin, begin + together < n ? begin + together : n, member);
    });
}

}  // namespace kvscope::kernels
