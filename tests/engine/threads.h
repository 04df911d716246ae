#pragma once

#include <omp.h>

namespace kvscope::engine::testing {

/// The number of threads, until this object goes.
class Threads {
 public:
    explicit Threads(int n) : before_(omp_get_max_threads()) { omp_set_num_threads(n); }
    ~Threads() { omp_set_num_threads(before_); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

 private:
    int before_;
};

}  // namespace kvscope::engine::testing
