#include "app/gui/saved/autosave.h"

#include <imgui.h>

#include <utility>

namespace kvscope::gui {
namespace {

constexpr double seconds_to_save = 3;

}  // namespace

void Autosave::note_input() { save_at_ = ImGui::GetTime() + seconds_to_save; }

void Autosave::end_frame() {
    // Also saves recent files that the command line or a job opened, because no input precedes them.
    if (!std::exchange(knows_recent_, settings_.has_new_recent()) && knows_recent_) note_input();
    if (save_at_ >= 0 && ImGui::GetTime() >= save_at_) save();
    if (save_at_ >= 0) window_.draw_within(save_at_ - ImGui::GetTime());
}

bool Autosave::may_leave() {
    save();
    return sidecars_.may_leave();
}

void Autosave::save() {
    save_at_ = -1;
    sidecars_.retry_annotations();
    sidecars_.save_annotations();
    sidecars_.save_views();
    if (!settings_.is_kept()) return;
    Settings& settings = settings_.values();
    if (keeps_layout_ && !views_.awaits_layout()) settings.layout = views_.state();
    settings.width = static_cast<int>(ImGui::GetMainViewport()->Size.x);
    settings.height = static_cast<int>(ImGui::GetMainViewport()->Size.y);
    settings_.save(notices_);
}

}  // namespace kvscope::gui
