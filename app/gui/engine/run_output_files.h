#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/gui/session/engine_session.h"

namespace kvscope::gui {

struct RunOutput {
    explicit RunOutput(std::filesystem::path file) : path(std::move(file)) {}

    std::filesystem::path path;
    std::atomic<bool> is_paused{false};  ///< the job is paused, so another job may use the file
};

/// The files that runs write to. UI thread only.
class RunOutputs {
 public:
    /// Reserves a file for a job for the lifetime of the returned object.
    [[nodiscard]] std::shared_ptr<RunOutput> take(const std::filesystem::path& path);
    [[nodiscard]] bool is_taken(const std::filesystem::path& path) const;

    /// Returns the output for a request that names none: the file in which the same request was begun, or a new file.
    [[nodiscard]] std::filesystem::path place_for(const RunRequest& request);
    [[nodiscard]] std::filesystem::path continued_output(const RunRequest& request) const;
    /// Makes the next request use a new file.
    void forget_begun() { begun_.reset(); }

 private:
    struct Begun {
        RunRequest request;
        std::filesystem::path output;
    };

    std::vector<std::weak_ptr<RunOutput>> taken_;
    std::optional<Begun> begun_;  ///< last run without a named output
};

}  // namespace kvscope::gui
