#include "app/gui/shell/recent_files.h"

#include "trace/part_folder.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_between_looks = 2;

RecentFile looked_up(const fs::path& path, bool is_trace) {
    std::error_code error;
    if (path.extension() == ".part")
        return {path, fs::exists(path, error) ? RecentFile::State::unfinished : RecentFile::State::gone};
    if (fs::exists(path, error)) return {path, RecentFile::State::there};
    const bool is_begun = is_trace && fs::is_directory(trace::part_folder_of(path), error);
    return {path, is_begun ? RecentFile::State::unfinished : RecentFile::State::gone};
}

}  // namespace

void RecentFiles::update(double now) {
    const bool is_same = seen_traces_ == settings_.recent_traces && seen_models_ == settings_.recent_models;
    if (is_same && now < look_again_at_) return;
    look_again_at_ = now + seconds_between_looks;
    seen_traces_ = settings_.recent_traces;
    seen_models_ = settings_.recent_models;
    traces_.clear();
    models_.clear();
    for (const auto& path : seen_traces_) traces_.push_back(looked_up(path, true));
    for (const auto& path : seen_models_) models_.push_back(looked_up(path, false));
}

}  // namespace kvscope::gui
