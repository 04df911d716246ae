#pragma once

#include <imgui.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::gui {

/// A view of a layout and the part of the window it stands in.
struct Placed {
    std::string kind;
    std::string place;
};

/// The window cut into named places. Each cut takes a share of a place off on one side and names what it takes.
struct Cut {
    std::string from;
    ImGuiDir side;
    float share;
    std::string to;
    /// In ems: takes more than its share where that is less. Where there is no room for it, it is left out, with what
    /// is cut from it, and its views are tabs of the place that it were cut from.
    float least = 0;
};

struct Layout {
    std::string name;   ///< "explore"
    std::string title;  ///< "Explore"
    std::vector<Cut> cuts;
    std::vector<Placed> views;  ///< in a place with several, the first is in front
    bool has(std::string_view kind) const {
        return std::any_of(views.begin(), views.end(), [&](const Placed& placed) { return placed.kind == kind; });
    }
    bool of_pair = false;  ///< A and B are shown alone in it, once both are chosen
};

/// The name of what a window begins with that was opened for one view alone; any layout can take its place.
inline constexpr const char* view_alone = "view alone";

const std::vector<Layout>& layouts();
/// nullptr where there is none of that name.
const Layout* find_layout(const std::string& name);

}  // namespace kvscope::gui
