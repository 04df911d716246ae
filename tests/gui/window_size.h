#pragma once

#include <GLFW/glfw3.h>
#include <imgui.h>

#include "tests/gui/driven_window.h"

namespace kvscope::gui::testing {

/// Sets the size of the test window while this exists.
class WindowSize {
 public:
    WindowSize(DrivenApp& driven, int width, int height) : driven_(driven) {
        glfwGetWindowSize(glfwGetCurrentContext(), &width_, &height_);
        set(width, height);
    }
    ~WindowSize() { set(width_, height_); }

 private:
    void set(int width, int height) {
        glfwSetWindowSize(glfwGetCurrentContext(), width, height);
        driven_.draw_until(
            [&] {
                const ImVec2 now = ImGui::GetMainViewport()->Size;
                return static_cast<int>(now.x) == width && static_cast<int>(now.y) == height;
            },
            4000);
    }

    DrivenApp& driven_;
    int width_ = 0, height_ = 0;
};

}  // namespace kvscope::gui::testing
