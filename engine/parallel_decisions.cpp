#include "engine/parallel_decisions.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"
#include "kernels/threads/team.h"

namespace kvscope::engine {
namespace {

/// Whether there are enough runs to use one thread per run instead of all threads for each run.
bool are_enough(size_t n_runs, int n_threads) {
    return n_threads > 1 && n_runs > 1 && 2 * n_runs >= static_cast<size_t>(n_threads);
}

void choose_beside(std::span<ActiveRun* const> runs, const Progress& progress) {
    std::atomic<size_t> unclaimed{0};
    std::atomic<bool> is_stopped{false};
    std::vector<std::exception_ptr> failures(runs.size());
    const auto choose = [&](int member) {
        for (;;) {
            // Only member 0, the engine's thread, may call `progress`. A pause would not stop the other threads.
            if (member == 0 && progress.stop_token().stop_requested()) is_stopped = true;
            if (is_stopped) return;
            const size_t i = unclaimed++;
            if (i >= runs.size()) return;
            try {
                runs[i]->choose(true);
            } catch (...) {
                failures[i] = std::current_exception();
                is_stopped = true;
            }
        }
    };
    for (;;) {
        kernels::run_on_thread_team(kernels::threads(), choose);
        for (const auto& failure : failures)
            if (failure) std::rethrow_exception(failure);
        if (!is_stopped) return;
        progress.throw_if_stopped();
        is_stopped = false;
    }
}

/// Joins the copies of several runs into one call, because each call has a fixed cost.
class Copies {
 public:
    explicit Copies(const kernels::Backend& backend) : backend_(backend) {}

    void take(ActiveRun& run) {
        const size_t first = all_.size();
        run.take(&all_);
        int64_t n_rows = 0;
        for (size_t i = first; i < all_.size(); ++i) n_rows += all_[i].n_rows;
        rows_of_.emplace_back(&run, n_rows);
        n_rows_ += n_rows;
        if (n_rows_ > most_rows) make();
    }

    void make() {
        if (n_rows_ == 0) return;
        const Stopwatch watch;
        backend_.copy_rows(all_);
        const double each = watch.seconds() / static_cast<double>(n_rows_);
        for (const auto& [run, n_rows] : rows_of_) run->add_select_seconds(each * static_cast<double>(n_rows));
        all_.clear();
        rows_of_.clear();
        n_rows_ = 0;
    }

 private:
    static constexpr int64_t most_rows =
        int64_t{1} << 20;  // largest number of entries in one call, whose indices take 4 bytes each

    const kernels::Backend& backend_;
    std::vector<kernels::RowCopy> all_;
    std::vector<std::pair<ActiveRun*, int64_t>> rows_of_;
    int64_t n_rows_ = 0;
};

}  // namespace

double finish_pending_decisions(std::span<ActiveRun* const> runs, const kernels::Backend& backend,
                                const Progress& progress) {
    double seconds = 0;
    const bool beside = are_enough(runs.size(), kernels::threads());
    if (beside) {
        const Stopwatch watch;
        choose_beside(runs, progress);
        seconds = watch.seconds();
    }
    Copies copies(backend);
    for (ActiveRun* run : runs) {
        progress.throw_if_stopped();
        if (!beside) run->choose(false);
        copies.take(*run);
    }
    copies.make();
    return seconds;
}

}  // namespace kvscope::engine
