#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "app/gui/session/engine_session.h"

namespace kvscope::gui {

/// A file that a job writes to.
struct RunOutput {
    std::filesystem::path path;
    std::atomic<bool> is_paused{false};  ///< its job is paused: another one may take the file
};

/// The files that runs write to. The window's thread.
class RunOutputs {
 public:
    /// A job has it as long as it holds what is returned.
    std::shared_ptr<RunOutput> take(const std::filesystem::path& path);
    /// Whether a job that waits, or is under way, writes there.
    bool is_taken(const std::filesystem::path& path) const;

    /// Of a request that names none: where it was begun, else a new one, which it goes on at from then on.
    std::filesystem::path place_for(const RunRequest& request);
    /// As EngineSession::goes_on_at.
    std::filesystem::path goes_on_at(const RunRequest& request) const;
    /// The next request begins anew.
    void forget_begun() { begun_.reset(); }

 private:
    struct Begun {
        RunRequest request;
        std::filesystem::path output;
    };

    std::vector<std::weak_ptr<RunOutput>> taken_;
    std::optional<Begun> begun_;  ///< the last run into a file that was not named
};

}  // namespace kvscope::gui
