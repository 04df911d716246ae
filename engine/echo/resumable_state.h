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

/// File with the state of long work, from which interrupted work resumes.
class ResumableState {
 public:
    /// Arrays that are saved. Their order must not change.
    using Parts = std::vector<std::span<std::byte>>;

    /// @param path file of the state; if empty, nothing is stored
    /// @param kind first line of the file
    /// @param of description of all inputs; a state with another description is ignored
    /// @throws UsageError if another file or folder exists at the path
    ResumableState(std::filesystem::path path, std::string kind, std::string of);

    /// Fills the arrays from the file and returns the number of finished steps; 0 if no state is usable.
    /// @param unit plural name of the steps
    [[nodiscard]] int64_t resume(const Parts& parts, int64_t n_steps, std::string_view unit, Progress& progress);

    /// Saves the arrays after `done` steps, at most once a minute. Failures are reported, not thrown.
    void keep_each_minute(const Parts& parts, int64_t done, Progress& progress);

    void keep(const Parts& parts, int64_t done, Progress& progress);

 private:
    [[nodiscard]] int64_t read(const Parts& parts) const;
    [[nodiscard]] std::string write(const Parts& parts, int64_t done) const;

    std::filesystem::path path_;
    std::string kind_, of_;
    std::chrono::steady_clock::time_point kept_;
};

}  // namespace kvscope::engine
