#pragma once

#include <imgui.h>
#include <imgui_internal.h>

#include <map>
#include <vector>

namespace kvscope::gui {

/// Resizes the places with the app's window. A smaller window first shrinks the places around the center, in proportion
/// to their size above the minimum, and then the center. A larger window first restores the user's sizes.
class PlaceSizes {
 public:
    /// Resizes the places to a dock space of this size in pixels. Call before the dock space is drawn.
    void fit(ImGuiID dock_space, ImVec2 size);

 private:
    struct Side {
        ImGuiDockNode* node = nullptr;
        ImGuiAxis axis = ImGuiAxis_None;
        [[nodiscard]] float& size() const;
    };
    struct Wanted {
        float size = 0;
        float at = 0;   ///< length of the dock space in pixels when the user chose `size`
        float set = 0;  ///< size that fit() last gave the place
    };
    [[nodiscard]] static std::vector<Side> sides_of(ImGuiID dock_space);
    [[nodiscard]] Wanted& wanted(const Side& side, ImVec2 whole);

    std::map<ImGuiID, Wanted> wanted_;  ///< sizes by dock node, also of nodes that are hidden by a maximized view
};

}  // namespace kvscope::gui
