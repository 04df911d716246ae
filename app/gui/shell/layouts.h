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

/// A split of a place: `to` receives a share of `from` on one side.
struct Cut {
    std::string from;
    ImGuiDir side;
    float share;
    std::string to;
    /// Least size in ems. Without enough space, the cut is skipped and its views become tabs of `from`.
    float least = 0;
};

struct Layout {
    std::string name;   ///< e.g. "explore"
    std::string title;  ///< e.g. "Explore"
    std::vector<Cut> cuts;
    std::vector<Placed> views;  ///< the first view of a place is in front
    bool has(std::string_view kind) const {
        return std::any_of(views.begin(), views.end(), [&](const Placed& placed) { return placed.kind == kind; });
    }
    bool of_pair = false;  ///< whether the layout shows only runs A and B once both are chosen
};

/// Name of the layout of an app that was started with a single view.
inline constexpr const char* view_alone = "view alone";

const std::vector<Layout>& layouts();
/// Returns nullptr if there is no layout with this name.
const Layout* find_layout(const std::string& name);

}  // namespace kvscope::gui
