#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/common/progress.h"

namespace kvscope::engine {

/// State of unfinished long work in a file, from which the same work can continue.
class ResumableState {
 public:
    /// Arrays of the work, always the same ones in the same order.
    using Parts = std::vector<std::span<std::byte>>;

    /// @param path file of the state; if empty, nothing is stored
    /// @param kind first line of the file
    /// @param of everything that the result depends on; a state with another value is ignored
    /// @throws UsageError if the path holds something else
    ResumableState(std::filesystem::path path, std::string kind, std::string of);

    /// Fills the parts from the file, reports it, and returns the number of finished steps. Returns 0 if there is no
    /// usable file. @param unit plural name of the steps
    int64_t resume(const Parts& parts, int64_t n_steps, std::string_view unit, Progress& progress);

    /// Writes the parts after `done` steps, if the last write was at least a minute ago. Reports failures.
    void keep_each_minute(const Parts& parts, int64_t done, Progress& progress);

    void keep(const Parts& parts, int64_t done, Progress& progress);

 private:
    int64_t read(const Parts& parts) const;
    std::string write(const Parts& parts, int64_t done) const;

    std::filesystem::path path_;
    std::string kind_, of_;
    std::chrono::steady_clock::time_point kept_;
};

}  // namespace kvscope::engine
