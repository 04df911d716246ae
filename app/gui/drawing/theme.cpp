#include "app/gui/drawing/theme.h"

#include <fontconfig/fontconfig.h>
#include <implot.h>

#include <algorithm>
#include <memory>
#include <string>

namespace kvscope::gui {

namespace {

constexpr ImVec4 hex(uint32_t rgb, float alpha = 1) {
    return {static_cast<float>(rgb >> 16 & 255) / 255, static_cast<float>(rgb >> 8 & 255) / 255,
            static_cast<float>(rgb & 255) / 255, alpha};
}

ImVec4 faded(ImVec4 color, float alpha) {
    color.w = alpha;
    return color;
}

Theme dark() {
    return {Brightness::dark, hex(0x14161a), hex(0x1b1e24), hex(0xdfe3ea), hex(0x8b93a1), hex(0x2d323b), hex(0x4f9cf0),
            hex(0xffffff),    hex(0xff5fa2), hex(0xb9a0ff), hex(0xf0f030), hex(0xe0a050), hex(0xf0607a)};
}

Theme light() {
    return {Brightness::light, hex(0xf1f2f4), hex(0xfbfbfc), hex(0x1c2026), hex(0x666d78), hex(0xd8dbe0), hex(0x1f6fc9),
            hex(0x000000),     hex(0xc2185b), hex(0x6a3fc4), hex(0x300090), hex(0x907000), hex(0x9c0a34)};
}

struct FontFile {
    std::string path;
    int index = 0;
};

FontFile find_font(const char* pattern_text) {
    const auto destroy = [](FcPattern* pattern) { FcPatternDestroy(pattern); };
    const std::unique_ptr<FcPattern, decltype(destroy)> pattern(
        FcNameParse(reinterpret_cast<const FcChar8*>(pattern_text)), destroy);
    if (!pattern) return {};
    FcConfigSubstitute(nullptr, pattern.get(), FcMatchPattern);
    FcDefaultSubstitute(pattern.get());
    FcResult result = FcResultNoMatch;
    const std::unique_ptr<FcPattern, decltype(destroy)> match(FcFontMatch(nullptr, pattern.get(), &result), destroy);
    FcChar8* file = nullptr;
    FontFile found;
    if (!match || FcPatternGetString(match.get(), FC_FILE, 0, &file) != FcResultMatch) return {};
    found.path = reinterpret_cast<const char*>(file);
    FcPatternGetInteger(match.get(), FC_INDEX, 0, &found.index);
    found.index &= 0xffff;  // the upper half selects an instance of a variable font
    return found;
}

ImFont* add_font(const char* pattern, bool merge) {
    const FontFile file = find_font(pattern);
    if (file.path.empty()) return nullptr;
    ImFontConfig config;
    config.MergeMode = merge;
    config.FontNo = static_cast<ImU32>(file.index);
    return ImGui::GetIO().Fonts->AddFontFromFileTTF(file.path.c_str(), 0, &config);
}

ImFont* add_family(const char* pattern) {
    ImFont* font = add_font(pattern, false);
    if (!font) font = ImGui::GetIO().Fonts->AddFontDefault();
    add_font("Noto Sans CJK SC", true);
    add_font("Noto Sans Symbols2", true);
    add_font("DejaVu Sans", true);  // for mathematical letters, as in WᵀW
    return font;
}

void set_sizes(ImGuiStyle& style, float scale) {
    style.FontSizeBase = 15;
    style.WindowPadding = {8, 8};
    style.FramePadding = {8, 4};
    style.ItemSpacing = {8, 4};
    style.ItemInnerSpacing = {4, 4};
    style.CellPadding = {8, 2};
    style.IndentSpacing = 16;
    style.ScrollbarSize = 12;
    style.WindowBorderSize = 0;
    style.ChildBorderSize = 0;
    style.PopupBorderSize = 1;
    style.FrameBorderSize = 0;
    style.TabBorderSize = 0;
    style.TabBarBorderSize = 1;
    style.TabBarOverlineSize = 2;
    style.DockingSeparatorSize = 2;
    style.WindowRounding = 0;
    style.FrameRounding = 3;
    style.PopupRounding = 4;
    style.GrabRounding = 3;
    style.TabRounding = 0;
    style.WindowMenuButtonPosition = ImGuiDir_None;
    style.HoverDelayNormal = 0.25f;
    style.ScaleAllSizes(scale);
    style.FontScaleMain = scale;
}

void set_colors(ImVec4 (&colors)[ImGuiCol_COUNT], const Theme& theme) {
    const bool is_dark = theme.brightness == Brightness::dark;
    const ImVec4 raised = is_dark ? hex(0x2a2f39) : hex(0xe5e8ec);
    const ImVec4 over = is_dark ? hex(0x363d4a) : hex(0xd8dde3);
    colors[ImGuiCol_Text] = theme.ink;
    colors[ImGuiCol_TextDisabled] = theme.ink_quiet;
    colors[ImGuiCol_WindowBg] = colors[ImGuiCol_ChildBg] = theme.panel;
    colors[ImGuiCol_ChildBg].w = 0;
    colors[ImGuiCol_PopupBg] = is_dark ? hex(0x20242b) : hex(0xffffff);
    colors[ImGuiCol_Border] = colors[ImGuiCol_Separator] = theme.line;
    colors[ImGuiCol_FrameBg] = raised;
    colors[ImGuiCol_FrameBgHovered] = colors[ImGuiCol_FrameBgActive] = over;
    colors[ImGuiCol_TitleBg] = colors[ImGuiCol_TitleBgActive] = colors[ImGuiCol_TitleBgCollapsed] = theme.ground;
    colors[ImGuiCol_MenuBarBg] = theme.ground;
    colors[ImGuiCol_DockingEmptyBg] = theme.ground;
    colors[ImGuiCol_Button] = raised;
    colors[ImGuiCol_ButtonHovered] = over;
    colors[ImGuiCol_ButtonActive] = faded(theme.accent, 0.6f);
    colors[ImGuiCol_Header] = faded(theme.accent, 0.25f);
    colors[ImGuiCol_HeaderHovered] = faded(theme.accent, 0.35f);
    colors[ImGuiCol_HeaderActive] = faded(theme.accent, 0.5f);
    colors[ImGuiCol_Tab] = colors[ImGuiCol_TabDimmed] = theme.ground;
    colors[ImGuiCol_TabSelected] = colors[ImGuiCol_TabDimmedSelected] = theme.panel;
    colors[ImGuiCol_TabHovered] = over;
    colors[ImGuiCol_TabSelectedOverline] = theme.accent;
    colors[ImGuiCol_TabDimmedSelectedOverline] = faded(theme.line, 1);
    colors[ImGuiCol_CheckMark] = colors[ImGuiCol_SliderGrab] = theme.accent;
    colors[ImGuiCol_SliderGrabActive] = theme.accent;
    colors[ImGuiCol_TableHeaderBg] = theme.panel;
    colors[ImGuiCol_TableBorderStrong] = colors[ImGuiCol_TableBorderLight] = theme.line;
    colors[ImGuiCol_TableRowBgAlt] = is_dark ? hex(0xffffff, 0.02f) : hex(0x000000, 0.02f);
    colors[ImGuiCol_SeparatorHovered] = colors[ImGuiCol_SeparatorActive] = theme.accent;
    colors[ImGuiCol_PlotHistogram] = faded(theme.accent, 0.45f);  // text is drawn on top
    colors[ImGuiCol_NavCursor] = theme.accent;
    colors[ImGuiCol_TextSelectedBg] = faded(theme.accent, 0.35f);
    colors[ImGuiCol_DockingPreview] = faded(theme.accent, 0.4f);
    colors[ImGuiCol_ModalWindowDimBg] = hex(0x000000, is_dark ? 0.45f : 0.2f);
    colors[ImGuiCol_DragDropTarget] = theme.accent;
    colors[ImGuiCol_ResizeGrip] = faded(theme.accent, 0);
    colors[ImGuiCol_ScrollbarBg] = faded(theme.panel, 0);
    colors[ImGuiCol_ScrollbarGrab] = faded(theme.ink_quiet, 0.8f);
    colors[ImGuiCol_ScrollbarGrabHovered] = theme.ink_quiet;
    colors[ImGuiCol_ScrollbarGrabActive] = theme.accent;
}

void set_plot_style(ImPlotStyle& plot, const Theme& theme, float scale) {
    theme.brightness == Brightness::dark ? ImPlot::StyleColorsDark(&plot) : ImPlot::StyleColorsLight(&plot);
    plot.Colors[ImPlotCol_FrameBg] = faded(theme.panel, 0);
    plot.Colors[ImPlotCol_PlotBg] = theme.ground;
    plot.Colors[ImPlotCol_PlotBorder] = theme.line;
    plot.Colors[ImPlotCol_Selection] = theme.accent;
    plot.Colors[ImPlotCol_AxisGrid] = faded(theme.ink, 0.12f);
    plot.Colors[ImPlotCol_AxisText] = theme.ink_quiet;
    plot.Colors[ImPlotCol_LegendBg] = faded(theme.panel, 0.85f);
    plot.Colors[ImPlotCol_LegendBorder] = theme.line;
    plot.PlotPadding = {8 * scale, 8 * scale};
    plot.PlotBorderSize = 1;
    plot.MinorAlpha = 0.4f;
}

}  // namespace

Fonts load_fonts() {
    Fonts fonts;
    fonts.text = add_family("Inter");
    fonts.bold = add_family("Inter:semibold");
    fonts.mono = add_family("JetBrains Mono");
    return fonts;
}

Theme apply_theme(Brightness brightness, float scale) {
    const Theme theme = brightness == Brightness::dark ? dark() : light();
    ImGuiStyle style;
    brightness == Brightness::dark ? ImGui::StyleColorsDark(&style) : ImGui::StyleColorsLight(&style);
    set_sizes(style, scale);
    set_colors(style.Colors, theme);
    ImGui::GetStyle() = style;
    set_plot_style(ImPlot::GetStyle(), theme, scale);
    return theme;
}

ImU32 packed(const ImVec4& color, float alpha) {
    return ImGui::ColorConvertFloat4ToU32({color.x, color.y, color.z, color.w * alpha});
}

ImU32 packed(analysis::Rgb color, float alpha) {
    return IM_COL32(color.r, color.g, color.b, static_cast<int>(alpha * 255));
}

namespace {

double luminance(ImVec4 color) { return 0.2126 * color.x + 0.7152 * color.y + 0.0722 * color.z; }

ImVec4 opaque(analysis::Rgb color) {
    return {static_cast<float>(color.r) / 255, static_cast<float>(color.g) / 255, static_cast<float>(color.b) / 255, 1};
}

bool is_pale_hue(analysis::Rgb color) {
    const auto [least, most] = std::minmax({color.r, color.g, color.b});
    return least > 0xc0 && most - least >= 8;
}

}  // namespace

ImVec4 mixed(ImVec4 a, ImVec4 b, float share) {
    return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y), a.z + share * (b.z - a.z), 1};
}

ImVec4 adapt_area_color_to_theme(analysis::Rgb color, const Theme& theme) {
    if (theme.brightness == Brightness::light) return opaque(color);
    if (color == analysis::Rgb{}) return theme.ink;
    const auto [least, most] = std::minmax({color.r, color.g, color.b});
    if (is_pale_hue(color)) {  // a near-white color becomes a color near the background with the same hue
        const auto full = [rest = static_cast<float>(255 - least)](uint8_t channel) {
            return 1 - static_cast<float>(255 - channel) / rest;
        };
        return mixed(theme.ground, {full(color.r), full(color.g), full(color.b), 1}, 0.3f);
    }
    if (least > 0xc0) return theme.line;
    ImVec4 seen = opaque(color);
    for (int i = 0; i < 10 && luminance(seen) < 0.3; ++i) seen = mixed(seen, theme.ink, 0.1f);
    return seen;
}

ImVec4 adapt_line_color_to_theme(const analysis::MarkColor& color, const Theme& theme) {
    if (theme.brightness == Brightness::light) return opaque(color);
    if (color.on_dark) return opaque(*color.on_dark);
    return is_pale_hue(color) ? opaque(color) : adapt_area_color_to_theme(color, theme);
}

analysis::ColorMap adapt_color_map_to_theme(analysis::ColorMap on_paper, const Theme& theme) {
    using analysis::ColorMap;
    if (theme.brightness == Brightness::light) return on_paper;
    if (on_paper == ColorMap::viridis_reversed) return ColorMap::viridis;
    return on_paper == ColorMap::blue_white_red ? ColorMap::blue_dark_red : on_paper;
}

}  // namespace kvscope::gui
