#include "app/figures/figure_text.h"

#include <pango/pangocairo.h>

#include <memory>
#include <numbers>
#include <vector>

#include "app/figures/figure_theme.h"
#include "app/figures/pen.h"

#if defined(__SANITIZE_ADDRESS__)
// Fontconfig stores pointers as offsets, which the leak checker cannot follow.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libfontconfig\n"; }
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
#endif

namespace kvscope::figures {
namespace {

struct Unref {
    void operator()(void* object) const { g_object_unref(object); }
};
using Layout = std::unique_ptr<PangoLayout, Unref>;
using Context = std::unique_ptr<PangoContext, Unref>;

Context make_context() {
    Context context(pango_font_map_create_context(pango_cairo_font_map_get_default()));
    pango_cairo_context_set_resolution(context.get(), 72);
    cairo_font_options_t* options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(context.get(), options);
    cairo_font_options_destroy(options);
    pango_context_set_round_glyph_positions(context.get(), FALSE);
    return context;
}

Layout make_layout(PangoContext* context, const std::string& text, const TextStyle& style) {
    Layout layout(pango_layout_new(context));
    PangoFontDescription* font =
        pango_font_description_from_string(style.monospace ? theme::font_monospace : theme::font);
    pango_font_description_set_size(font, static_cast<int>(style.size_pt * PANGO_SCALE));
    if (style.bold) pango_font_description_set_weight(font, PANGO_WEIGHT_SEMIBOLD);
    pango_layout_set_font_description(layout.get(), font);
    pango_font_description_free(font);
    PangoAttrList* attributes = pango_attr_list_new();
    // Disable ligatures, which would turn the characters "<|" of a token into an arrowhead.
    const char* features = style.monospace ? "tnum, calt=0, liga=0" : "tnum";
    pango_attr_list_insert(attributes, pango_attr_font_features_new(features));
    pango_layout_set_attributes(layout.get(), attributes);
    pango_attr_list_unref(attributes);
    pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
    const std::string valid = valid_text(text);
    pango_layout_set_text(layout.get(), valid.c_str(), static_cast<int>(valid.size()));
    return layout;
}

void set_ink(PangoLayout* layout, size_t from, size_t to, analysis::Rgb color) {
    constexpr int full = 0x101;  // converts 255 (8 bits) to 65535 (16 bits)
    PangoAttribute* ink =
        pango_attr_foreground_new(static_cast<guint16>(color.r * full), static_cast<guint16>(color.g * full),
                                  static_cast<guint16>(color.b * full));
    ink->start_index = static_cast<guint>(from);
    ink->end_index = static_cast<guint>(to);
    pango_attr_list_insert(pango_layout_get_attributes(layout), ink);
}

TextSize size_of(PangoLayout* layout) {
    PangoRectangle logical;
    pango_layout_get_extents(layout, nullptr, &logical);
    return {pango_units_to_double(logical.width), pango_units_to_double(logical.height)};
}

}  // namespace

std::string valid_text(const std::string& text) {
    const std::unique_ptr<char, decltype(&g_free)> valid(
        g_utf8_make_valid(text.data(), static_cast<gssize>(text.size())), g_free);
    return valid.get();
}

TextSize measure_text(const std::string& text, const TextStyle& style) {
    const Context context = make_context();
    return size_of(make_layout(context.get(), text, style).get());
}

void draw_text(cairo_t* cr, const std::string& text, const TextStyle& style, double x, double y,
               HorizontalAlign horizontal, VerticalAlign vertical, int turn) {
    if (text.empty()) return;
    const Context context = make_context();
    const Layout layout = make_layout(context.get(), text, style);
    const TextSize size = size_of(layout.get());
    cairo_save(cr);
    cairo_translate(cr, x, y);
    cairo_rotate(cr, -turn * std::numbers::pi / 2);
    const double dx = horizontal == HorizontalAlign::left ? 0 : horizontal == HorizontalAlign::center ? 0.5 : 1;
    const double dy = vertical == VerticalAlign::top ? 0 : vertical == VerticalAlign::middle ? 0.5 : 1;
    cairo_translate(cr, -dx * size.width, -dy * size.height);
    set_color(cr, style.color);
    cairo_move_to(cr, 0, 0);
    pango_cairo_show_layout(cr, layout.get());
    cairo_restore(cr);
}

void draw_label(cairo_t* cr, const analysis::TextLabel& label, double size_pt, double x, double y, double width) {
    std::string text;
    std::vector<size_t> ends;
    size_t from = 0;
    for (const auto& ink : label.inks) {
        text += valid_text(label.text.substr(from, ink.end - from));
        ends.push_back(text.size());
        from = ink.end;
    }
    text += valid_text(label.text.substr(from));
    if (text.empty()) return;
    const Context context = make_context();
    if (label.is_right_to_left) pango_context_set_base_dir(context.get(), PANGO_DIRECTION_RTL);
    const Layout layout = make_layout(context.get(), text, {size_pt, label.bold, label.monospace, label.color});
    if (label.is_right_to_left) pango_layout_set_auto_dir(layout.get(), FALSE);
    from = 0;
    for (size_t i = 0; i < ends.size(); from = ends[i++]) set_ink(layout.get(), from, ends[i], label.inks[i].color);
    if (label.underlined)
        pango_attr_list_insert(pango_layout_get_attributes(layout.get()),
                               pango_attr_underline_new(PANGO_UNDERLINE_SINGLE));
    const TextSize size = size_of(layout.get());
    cairo_save(cr);
    cairo_translate(cr, x, y);
    if (width > 0 && size.width > width) cairo_scale(cr, width / size.width, 1);
    set_color(cr, label.color);
    cairo_move_to(cr, -size.width / 2, -size.height / 2);
    pango_cairo_show_layout(cr, layout.get());
    cairo_restore(cr);
}

std::string fit_text(const std::string& text, const TextStyle& style, double width) {
    if (measure_text(text, style).width <= width) return text;
    std::string cut = text;
    while (!cut.empty()) {
        for (bool whole_character = false; !whole_character && !cut.empty(); cut.pop_back())
            whole_character = (static_cast<unsigned char>(cut.back()) & 0xC0) != 0x80;
        if (measure_text(cut + "…", style).width <= width) return cut + "…";
    }
    return "";
}

}  // namespace kvscope::figures
