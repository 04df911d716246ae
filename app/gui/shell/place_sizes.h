#pragma once

#include <imgui.h>
#include <imgui_internal.h>

#include <map>
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
        ImGuiDockNode* node = nullptr;
        ImGuiAxis axis = ImGuiAxis_None;
        float& size() const;
    };
    /// As a layout or a person has made a side.
    struct Wanted {
        float size = 0;
        float at = 0;   ///< size of the dock space then, along the side's axis
        float set = 0;  ///< what was made of it last
    };
    static std::vector<Side> sides_of(ImGuiID dock_space);
    Wanted& wanted(const Side& side, ImVec2 whole);

    std::map<ImGuiID, Wanted> wanted_;  ///< by node; also of those that are gone while a view is maximised
};

}  // namespace kvscope::gui
