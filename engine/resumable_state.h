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

/// State of unfinished long work, kept in a file beside its output, so that the same work can continue from it.
class ResumableState {
 public:
    /// Arrays of the work, always the same ones in the same order.
    using Parts = std::vector<std::span<std::byte>>;

    /// @param path file of the state; if empty, nothing is stored
    /// @param kind first line of the file, which names the kind of work
    /// @param of everything that the result depends on; a state with another value is ignored
    /// @throws UsageError if the path holds something other than a file of this kind
    ResumableState(std::filesystem::path path, std::string kind, std::string of);

    /// Fills the parts from the file and reports it. Returns the number of finished steps. Returns 0 and leaves the
    /// parts unchanged if the file does not exist, is damaged, or belongs to other work.
    /// @param unit plural name of the steps
    int64_t resume(const Parts& parts, int64_t n_steps, std::string_view unit, Progress& progress);

    /// Writes the parts after `done` steps, if the last write or the beginning was at least a minute ago. A failure is
    /// reported, and the work continues.
    void keep_each_minute(const Parts& parts, int64_t done, Progress& progress);

    /// Writes the parts now.
    void keep(const Parts& parts, int64_t done, Progress& progress);

 private:
    int64_t read(const Parts& parts) const;
    std::string write(const Parts& parts, int64_t done) const;

    std::filesystem::path path_;
    std::string kind_, of_;
    std::chrono::steady_clock::time_point kept_;
};

}  // namespace kvscope::engine
