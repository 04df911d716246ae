#pragma once

#include <imgui.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::gui {

struct Placed {
    std::string kind;
    std::string place;
};

/// Cuts the new place `to` from one side of the place `from`. `share` is the fraction of `from` that `to` receives.
struct Cut {
    std::string from;
    ImGuiDir side;
    float share;
    std::string to;
    /// Minimum size of `to` in ems. In a smaller space, the views of `to` become tabs of `from` instead.
    float least = 0;
};

struct Layout {
    std::string name;   ///< e.g. "explore"
    std::string title;  ///< e.g. "Explore"
    std::vector<Cut> cuts;
    std::vector<Placed> views;  ///< the first view of a place is in front
    [[nodiscard]] bool has(std::string_view kind) const {
        return std::ranges::any_of(views, [&](const Placed& placed) { return placed.kind == kind; });
    }
    bool of_pair = false;  ///< whether the layout shows only runs A and B after both are chosen
};

/// Name of the layout with the single view that AppOptions::view names.
inline constexpr const char* view_alone = "view alone";

[[nodiscard]] const std::vector<Layout>& layouts();
[[nodiscard]] const Layout* find_layout(const std::string& name);

}  // namespace kvscope::gui
