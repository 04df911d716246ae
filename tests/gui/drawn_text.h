#pragma once

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/gui/driven_window.h"

namespace kvscope::gui::testing {

/// A character in the last frame.
struct DrawnGlyph {
    ImRect whole;
    float left, right;  ///< visible part, pixels
    float top, bottom;
    [[nodiscard]] bool is_cut() const {
        return right - left < 0.6f * whole.GetWidth() && bottom - top > 0.9f * whole.GetHeight() &&
               whole.GetWidth() > 2;
    }
};

/// Characters that a window draws, without its child windows. A character drawn in parts of several colors counts once.
[[nodiscard]] inline std::vector<DrawnGlyph> drawn_glyphs(const ImGuiWindow& window) {
    std::vector<DrawnGlyph> all;
    const ImDrawList& list = *window.DrawList;
    for (const ImDrawCmd& command : list.CmdBuffer) {
        if (command.UserCallback) continue;
        const ImRect clip(command.ClipRect);
        // A glyph is two triangles, (0, 1, 2) and (0, 2, 3), with a texture that changes in both directions.
        for (unsigned i = 0; i + 6 <= command.ElemCount; i += 3) {
            const ImDrawIdx* index = &list.IdxBuffer[static_cast<int>(command.IdxOffset + i)];
            const auto vertex = [&](int k) { return list.VtxBuffer[static_cast<int>(command.VtxOffset + index[k])]; };
            const ImDrawVert from = vertex(0), to = vertex(2);
            const bool is_quad = index[3] == index[0] && index[4] == index[2] && vertex(1).pos.y == from.pos.y &&
                                 vertex(5).pos.x == from.pos.x;
            if (!is_quad || from.uv.x == to.uv.x || from.uv.y == to.uv.y) continue;
            const ImRect whole(from.pos, to.pos);
            ImRect seen = whole;
            seen.ClipWithFull(clip);
            if (seen.GetWidth() <= 0 || seen.GetHeight() <= 0) continue;
            const auto before = std::find_if(all.begin(), all.end(), [&](const DrawnGlyph& one) {
                return one.whole.Min.x == whole.Min.x && one.whole.Min.y == whole.Min.y &&
                       one.whole.Max.x == whole.Max.x && one.whole.Max.y == whole.Max.y;
            });
            if (before == all.end()) {
                all.push_back({whole, seen.Min.x, seen.Max.x, seen.Min.y, seen.Max.y});
            } else {
                before->left = std::min(before->left, seen.Min.x);
                before->right = std::max(before->right, seen.Max.x);
            }
        }
    }
    return all;
}

/// Windows of a view that are in front, including child windows.
[[nodiscard]] inline std::vector<const ImGuiWindow*> windows_of_view(const std::string& view) {
    std::vector<const ImGuiWindow*> windows;
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
        const std::string name = window->Name;
        if (window->WasActive && !window->Hidden && name.find("###" + view + "-1") != std::string::npos)
            windows.push_back(window);
    }
    return windows;
}

/// Characters of a view that overlap or are cut off, and windows that are wider than their visible part.
/// @param badges areas where badges cover the text
[[nodiscard]] inline std::vector<std::string> faults_of_text(const std::string& view,
                                                             const std::vector<ImRect>& badges = {}) {
    std::vector<std::string> faults;
    std::vector<DrawnGlyph> all;
    for (const ImGuiWindow* window : windows_of_view(view)) {
        if (window->ScrollMax.x > 0)
            faults.push_back(fmt::format("{}: {} too wide", window->Name, window->ScrollMax.x));
        for (const DrawnGlyph& glyph : drawn_glyphs(*window)) {
            const ImVec2 middle = glyph.whole.GetCenter();
            if (std::any_of(badges.begin(), badges.end(), [&](const ImRect& badge) { return badge.Contains(middle); }))
                continue;
            if (glyph.is_cut())
                faults.push_back(fmt::format("{}: a character at {}, {} is cut", window->Name, glyph.whole.Min.x,
                                             glyph.whole.Min.y));
            all.push_back(glyph);
        }
    }
    for (size_t i = 0; i < all.size(); ++i) {
        for (size_t j = i + 1; j < all.size(); ++j) {
            const DrawnGlyph &one = all[i], &other = all[j];
            const float width = std::min(one.right, other.right) - std::max(one.left, other.left);
            const float height = std::min(one.bottom, other.bottom) - std::max(one.top, other.top);
            const float narrow = std::min(one.right - one.left, other.right - other.left);
            const float low = std::min(one.bottom - one.top, other.bottom - other.top);
            if (width > 0.5f * narrow && height > 0.5f * low)
                faults.push_back(fmt::format("two characters at {}, {}", other.whole.Min.x, other.whole.Min.y));
        }
    }
    return faults;
}

/// Items of a view whose label has this end.
[[nodiscard]] inline std::vector<ImRect> items_of_view(ImGuiTestContext& c, const std::string& view,
                                                       const std::string& label_end) {
    std::vector<ImRect> found;
    ImGuiTestItemList items;
    c.GatherItems(&items, ("//" + view + "-1").c_str(), -1);
    for (const ImGuiTestItemInfo& item : items)
        if (std::string(item.DebugLabel).ends_with(label_end)) found.push_back(item.RectFull);
    return found;
}

/// Items of a view that are narrower than their label.
[[nodiscard]] inline std::vector<std::string> cut_items(ImGuiTestContext& c, const std::string& view) {
    std::vector<std::string> cut;
    ImGuiTestItemList items;
    c.GatherItems(&items, ("//" + view + "-1").c_str(), -1);
    for (const ImGuiTestItemInfo& item : items) {
        const std::string label = item.DebugLabel;
        const std::string shown = label.substr(0, label.find("##"));
        const float width = ImGui::CalcTextSize(shown.c_str()).x;
        // DebugLabel holds 32 bytes, so that only the beginning of a longer label is checked.
        if (width > item.RectFull.GetWidth() + 1)
            cut.push_back(fmt::format("{}: {} pixels of {}", label, item.RectFull.GetWidth(), width));
    }
    return cut;
}

}  // namespace kvscope::gui::testing
