#include "app/gui/layout/view_picture.h"

#include <imgui.h>

#include <cmath>

#include "app/gui/view/image_clipboard.h"

namespace kvscope::gui {

void ViewPicture::ask_for(const OpenView& open) {
    wanted_ = open.id();
    frames_to_wait_ = 2;
    window_.draw_again();
}

void ViewPicture::take_if_wanted(const OpenView& open) {
    if (wanted_.empty() || wanted_ != open.id()) return;
    if (frames_to_wait_-- > 0) return window_.draw_again();
    wanted_.clear();
    take();
}

void ViewPicture::take() {
    const ImVec2 origin = ImGui::GetMainViewport()->Pos;
    const ImVec2 pixels = ImGui::GetIO().DisplayFramebufferScale;
    const auto whole = [](float value) { return static_cast<int>(std::lround(value)); };
    const ImVec2 at = ImGui::GetWindowPos();
    const ImVec2 size = ImGui::GetWindowSize();
    const int left = whole((at.x - origin.x) * pixels.x);
    const int top = whole((at.y - origin.y) * pixels.y);
    const int width = whole(size.x * pixels.x);
    const int height = whole(size.y * pixels.y);
    window_.take_picture(lifetime_.guard([this, left, top, width, height](const Screenshot& all) {
        tasks_.once(
            [all, left, top, width, height] {
                const TemporaryPng png;
                write_png(crop_screenshot(all, left, top, width, height), png.path());
                copy_png_to_clipboard(png.path());
                return std::string("view copied as screenshot");
            },
            notices_.function());
    }));
}

}  // namespace kvscope::gui
