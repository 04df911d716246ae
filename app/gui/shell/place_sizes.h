#pragma once

#include <imgui.h>

#include <vector>

namespace kvscope::gui {

/// What becomes of the places when the window's size changes. A smaller window takes from those beside and below the
/// middle first, from each in proportion to what it has above its least size, and only then from the middle, where the
/// maps are; what grows back goes to them until they are as wide as a person had made them.
class PlaceSizes {
 public:
    /// To be called before the dock space is drawn. @param size of the dock space in this frame, in pixels
    void fit(ImGuiID dock_space, ImVec2 size);

 private:
    struct Side {
        ImGuiID node = 0;
        int axis = 0;  ///< ImGuiAxis
        float size = 0;
        bool operator==(const Side&) const = default;
    };
    static std::vector<Side> sides_of(ImGuiID dock_space);

    std::vector<Side> wanted_;  ///< as a layout or a person has made them
    ImVec2 wanted_at_;          ///< size of the dock space then
    std::vector<Side> set_;     ///< as they were left in the frame before
};

}  // namespace kvscope::gui
