#include "app/gui/shell/recent_files.h"

#include <algorithm>
#include <utility>

#include "trace/part_folder.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_between_looks = 2;

RecentFile looked_up(const fs::path& path, bool is_trace) {
    std::error_code error;
    if (path.extension() == ".part") {
        if (fs::exists(path, error)) return {path, RecentFile::State::unfinished};
        const fs::path whole = fs::path(path).replace_extension();  // that it has become, where it is there
        return {fs::exists(whole, error) ? whole : path,
                fs::exists(whole, error) ? RecentFile::State::there : RecentFile::State::gone};
    }
    if (fs::exists(path, error)) return {path, RecentFile::State::there};
    const bool is_begun = is_trace && fs::is_directory(trace::part_folder_of(path), error);
    return {path, is_begun ? RecentFile::State::unfinished : RecentFile::State::gone};
}

/// An unfinished trace may have been opened by its folder's name, and by that of the trace which is to come of it.
void add_once(std::vector<RecentFile>& files, RecentFile file) {
    const auto name_of = [](const RecentFile& of) {
        return of.state == RecentFile::State::unfinished && of.path.extension() != ".part"
                   ? trace::part_folder_of(of.path)
                   : of.path;
    };
    const bool is_known = std::any_of(files.begin(), files.end(),
                                      [&](const RecentFile& other) { return name_of(other) == name_of(file); });
    if (!is_known) files.push_back(std::move(file));
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
    for (const auto& path : seen_traces_) add_once(traces_, looked_up(path, true));
    for (const auto& path : seen_models_) models_.push_back(looked_up(path, false));
}

}  // namespace kvscope::gui
