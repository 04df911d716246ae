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

/// What long work has come to so far, kept in a file beside its output, so that the same work goes on behind it.
class ResumableState {
 public:
    /// The work's arrays, the same ones in the same order each time.
    using Parts = std::vector<std::span<std::byte>>;

    /// @param path empty: nothing is kept
    /// @param kind of work, the file's first line
    /// @param of   all that the work's result depends on: the state of other work is not gone on with
    /// @throws UsageError where something is at the path that is no file of this kind
    ResumableState(std::filesystem::path path, std::string kind, std::string of);

    /// Fills the parts, and says so. @returns the steps that they are of; 0, and the parts as they were, where there is
    /// no file, one of other work, or a damaged one
    /// @param unit steps of what, in the plural
    int64_t resume(const Parts& parts, int64_t n_steps, std::string_view unit, Progress& progress);

    /// Keeps the parts after `done` steps in place of the file, if that was last done, or the work begun, a minute ago.
    /// Where it is not possible, that is said, and the work goes on.
    void keep_each_minute(const Parts& parts, int64_t done, Progress& progress);

    /// The same at once.
    void keep(const Parts& parts, int64_t done, Progress& progress);

 private:
    int64_t read(const Parts& parts) const;
    std::string write(const Parts& parts, int64_t done) const;

    std::filesystem::path path_;
    std::string kind_, of_;
    std::chrono::steady_clock::time_point kept_;
};

}  // namespace kvscope::engine
