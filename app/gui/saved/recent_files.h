#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/gui/session/settings.h"
#include "app/gui/session/tasks.h"

namespace kvscope::gui {

struct RecentFile {
    enum class State { there, unfinished, gone };
    std::filesystem::path path;
    State state = State::there;  ///< unfinished: the trace of an interrupted run
    [[nodiscard]] std::string name() const { return path.filename().string(); }
    [[nodiscard]] std::string folder() const { return path.parent_path().string(); }
    [[nodiscard]] bool operator==(const RecentFile&) const = default;
};

/// Recent traces and models from the settings. Checks periodically whether the files still exist.
class RecentFiles {
 public:
    /// @param tasks runs the background jobs that read the files' contents; nullptr: contents are not shown
    explicit RecentFiles(Settings& settings, Tasks* tasks = nullptr) : settings_(settings), tasks_(tasks) {}

    [[nodiscard]] const std::vector<RecentFile>& traces() const { return traces_; }
    [[nodiscard]] const std::vector<RecentFile>& models() const { return models_; }
    /// Call in each frame that shows the files.
    void update(double now);
    /// Returns one line with a trace's date, prompt and policies, or "workspace". Returns an empty text until the file
    /// has been read and if reading fails.
    [[nodiscard]] std::string contents_of(const RecentFile& file) const;
    void clear_traces() { settings_.recent_traces.clear(); }

 private:
    Settings& settings_;
    Tasks* tasks_;
    TaskSlot<std::string> contents_;
    std::vector<RecentFile> traces_, models_;
    std::vector<std::string> seen_traces_, seen_models_;  ///< lists in the settings at the last check
    double look_again_at_ = -1;
};

}  // namespace kvscope::gui
