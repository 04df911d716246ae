#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace kvscope::kernels {

/// Queues in which numbered work items take turns, so that sums have the same order for any number of threads. An item
/// may start only after all items for which it waits have started.
class Turns {
 public:
    explicit Turns(size_t n_lines) : lines_(n_lines) {}

    void wait_for(size_t line, int64_t turn) const {
        while (lines_[line].load(std::memory_order_acquire) != turn) std::this_thread::yield();
    }
    void finish(size_t line, int64_t turn) { lines_[line].store(turn + 1, std::memory_order_release); }

 private:
    std::vector<std::atomic<int64_t>> lines_;
};

}  // namespace kvscope::kernels
