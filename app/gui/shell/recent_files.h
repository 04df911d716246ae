#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/gui/session/settings.h"
#include "app/gui/session/tasks.h"

namespace kvscope::gui {

/// A trace, a workspace or a model that was opened before, and what has become of it.
struct RecentFile {
    enum class State { there, unfinished, gone };
    std::filesystem::path path;
    State state = State::there;  ///< unfinished: of a trace there is what a run left that did not come to its end
    std::string name() const { return path.filename().string(); }
    std::string folder() const { return path.parent_path().string(); }
    bool operator==(const RecentFile&) const = default;
};

/// The recent traces and models of the settings. The disk is asked once in a while, not in each frame.
class RecentFiles {
 public:
    /// @param tasks reads what the files hold; nullptr: that is not shown
    explicit RecentFiles(Settings& settings, Tasks* tasks = nullptr) : settings_(settings), tasks_(tasks) {}

    const std::vector<RecentFile>& traces() const { return traces_; }
    const std::vector<RecentFile>& models() const { return models_; }
    /// In each frame that shows them. @param now in seconds, of any clock that goes on
    void update(double now);
    /// A trace's date, prompt and policies, in one line; of a workspace that it is one. Empty until it is read, and
    /// where it cannot be.
    std::string contents_of(const RecentFile& file) const;
    void clear_traces() { settings_.recent_traces.clear(); }

 private:
    Settings& settings_;
    Tasks* tasks_;
    TaskSlot<std::string> contents_;
    std::vector<RecentFile> traces_, models_;
    std::vector<std::string> seen_traces_, seen_models_;  ///< as the settings had them then
    double look_again_at_ = -1;
};

}  // namespace kvscope::gui
