#include "app/gui/drawing/shaped_text.h"

#include <imgui_internal.h>
#include <pango/pangocairo.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/tables/letters_drawn_together.h"
#include "app/gui/drawing/missing_fonts.h"
#include "app/gui/drawing/texture.h"
#include "common/utf8.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_bytes = size_t{48} << 20;
constexpr float text_height = 1.21f;  // ascent plus descent of Inter, in em
constexpr float mono_height = 1.32f;  // ascent plus descent of JetBrains Mono, in em
constexpr int margin = 1;             // pixels around a text, for glyphs that extend beyond its box

struct Unref {
    void operator()(void* object) const { g_object_unref(object); }
};
using Layout = std::unique_ptr<PangoLayout, Unref>;

struct Shaped {
    GLuint texture = 0;
    int width = 0;  ///< width of the texture in pixels
    int height = 0;
    float left = 0;  ///< left edge of the texture, relative to the beginning of the text
    float top = 0;   ///< top edge of the texture, relative to the baseline
    float advance = 0;
    bool is_colored = false;   ///< whether the text has its own colors and must not be tinted
    int used = 0;              ///< frame of the last use
    std::vector<float> edges;  ///< see byte_edges(); empty until requested
    size_t bytes() const { return static_cast<size_t>(width) * static_cast<size_t>(height) * 4; }
};

struct Store {
    std::unordered_map<std::string, Shaped> texts;
    std::unordered_map<uint64_t, bool> glyphs;  ///< whether a font has a character, by font and character
    std::unordered_map<std::string, std::vector<size_t>> line_starts;  ///< by text, face and width
    size_t bytes = 0;

    ~Store() {
        for (const auto& entry : texts) glDeleteTextures(1, &entry.second.texture);
    }

    void shrink() {
        if (bytes <= most_bytes) return;
        std::vector<std::pair<int, std::string>> by_age;
        for (const auto& [key, text] : texts) by_age.emplace_back(text.used, key);
        std::ranges::sort(by_age);
        for (const auto& [used, key] : by_age) {
            if (bytes <= most_bytes / 2 || used >= ImGui::GetFrameCount()) return;
            const auto found = texts.find(key);
            glDeleteTextures(1, &found->second.texture);
            bytes -= found->second.bytes();
            texts.erase(found);
        }
    }
};

std::unique_ptr<Store>& store_of_window() {
    static std::unique_ptr<Store> store;
    if (!store) {
        store = std::make_unique<Store>();
        ImGuiContextHook hook;
        hook.Type = ImGuiContextHookType_Shutdown;
        hook.Callback = [](ImGuiContext*, ImGuiContextHook*) { store_of_window().reset(); };
        ImGui::AddContextHook(ImGui::GetCurrentContext(), &hook);
    }
    return store;
}

bool font_has(ImFont* font, uint32_t c) {
    if (c > IM_UNICODE_CODEPOINT_MAX) return false;
    auto& glyphs = store_of_window()->glyphs;
    const uint64_t key = (static_cast<uint64_t>(font->FontId) << 32) | c;
    const auto found = glyphs.find(key);
    if (found != glyphs.end()) return found->second;
    return glyphs[key] = font->IsGlyphInFont(static_cast<ImWchar>(c));
}

Layout make_layout(const std::string& text, float pixels, bool mono) {
    const std::unique_ptr<PangoContext, Unref> context(
        pango_font_map_create_context(pango_cairo_font_map_get_default()));
    pango_cairo_context_set_resolution(context.get(), 72);
    Layout layout(pango_layout_new(context.get()));
    PangoFontDescription* font = pango_font_description_from_string(mono ? "JetBrains Mono, Noto Sans, sans-serif"
                                                                         : "Inter, Noto Sans, sans-serif");
    pango_font_description_set_absolute_size(font, static_cast<double>(pixels) * PANGO_SCALE);
    pango_layout_set_font_description(layout.get(), font);
    pango_font_description_free(font);
    pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
    const std::unique_ptr<char, decltype(&g_free)> valid(
        g_utf8_make_valid(text.data(), static_cast<gssize>(text.size())), g_free);
    pango_layout_set_text(layout.get(), valid.get(), -1);
    return layout;
}

void note_boxes(PangoLayout* layout) {
    if (pango_layout_get_unknown_glyphs_count(layout) == 0) return;
    const auto free = [](PangoLayoutIter* iter) { pango_layout_iter_free(iter); };
    const std::unique_ptr<PangoLayoutIter, decltype(free)> iter(pango_layout_get_iter(layout), free);
    do {
        const PangoLayoutRun* run = pango_layout_iter_get_run_readonly(iter.get());
        for (int i = 0; run && i < run->glyphs->num_glyphs; ++i) {
            const PangoGlyph glyph = run->glyphs->glyphs[i].glyph;
            if (glyph & PANGO_GLYPH_UNKNOWN_FLAG) note_missing_character(glyph & ~PANGO_GLYPH_UNKNOWN_FLAG);
        }
    } while (pango_layout_iter_next_run(iter.get()));
}

/// Converts Cairo's premultiplied BGRA to straight RGBA. Sets `is_colored` if a pixel is not white, as in emoji.
std::vector<uint8_t> straight(const uint8_t* data, int width, int height, int stride, bool& is_colored) {
    std::vector<uint8_t> out;
    out.reserve(static_cast<size_t>(width) * static_cast<size_t>(height) * 4);
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            const uint8_t* from = data + static_cast<ptrdiff_t>(y) * stride + static_cast<ptrdiff_t>(x) * 4;
            const int alpha = from[3];
            if (alpha > 32 && std::min({from[0], from[1], from[2]}) * 255 / alpha < 240) is_colored = true;
            for (const int channel : {2, 1, 0})
                out.push_back(static_cast<uint8_t>(alpha ? std::min(from[channel] * 255 / alpha, 255) : 255));
            out.push_back(static_cast<uint8_t>(alpha));
        }
    }
    return out;
}

GLuint upload(const std::vector<uint8_t>& rgba, int width, int height) {
    GLuint texture = 0;
    fill_texture(texture, GL_LINEAR, GL_RGBA8, width, height, GL_RGBA, GL_UNSIGNED_BYTE, rgba.data());
    return texture;
}

Shaped set(const std::string& text, float pixels, bool mono, ImVec4 color) {
    const Layout layout = make_layout(text, pixels, mono);
    note_boxes(layout.get());
    PangoRectangle ink;
    PangoRectangle logical;
    pango_layout_get_pixel_extents(layout.get(), &ink, &logical);
    const int left = std::min(ink.x, logical.x) - margin;
    const int top = std::min(ink.y, logical.y) - margin;
    GLint most = 0;
    glGetIntegerv(GL_MAX_TEXTURE_SIZE, &most);
    Shaped shaped;
    shaped.width =
        std::clamp(std::max(ink.x + ink.width, logical.x + logical.width) + margin - left, 1, static_cast<int>(most));
    shaped.height = std::max(ink.y + ink.height, logical.y + logical.height) + margin - top;
    shaped.left = static_cast<float>(left);
    shaped.top = static_cast<float>(top - PANGO_PIXELS(pango_layout_get_baseline(layout.get())));
    shaped.advance = static_cast<float>(logical.width);

    cairo_surface_t* surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, shaped.width, shaped.height);
    cairo_t* cr = cairo_create(surface);
    cairo_set_source_rgb(cr, static_cast<double>(color.x), static_cast<double>(color.y), static_cast<double>(color.z));
    cairo_move_to(cr, -left, -top);
    pango_cairo_show_layout(cr, layout.get());
    cairo_destroy(cr);
    cairo_surface_flush(surface);
    if (const uint8_t* data = cairo_image_surface_get_data(surface)) {
        const auto rgba =
            straight(data, shaped.width, shaped.height, cairo_image_surface_get_stride(surface), shaped.is_colored);
        shaped.texture = upload(rgba, shaped.width, shaped.height);
    }
    cairo_surface_destroy(surface);
    return shaped;
}

struct Face {
    ImFont* font = ImGui::GetFont();
    float size = ImGui::GetFontSize();

    bool is_mono() const { return std::string_view(font->GetDebugName()).find("Mono") != std::string_view::npos; }
    float ascent() const {
        const ImFontBaked* baked = font->GetFontBaked(size);
        return baked->Ascent * size / baked->Size;
    }
};

float framebuffer_scale() { return std::max(ImGui::GetIO().DisplayFramebufferScale.y, 1.0f); }

/// Pango's font size is the em. Dear ImGui's is ascent plus descent.
float pango_pixels(const Face& face) {
    return std::round(face.size * framebuffer_scale() / (face.is_mono() ? mono_height : text_height));
}

std::string key_of(std::string_view text, const Face& face) {
    return std::string(text) + '\n' + std::to_string(static_cast<int>(pango_pixels(face))) +
           (face.is_mono() ? 'm' : 't');
}

/// @param color color of plain letters next to colored glyphs; other texts are rendered in white and tinted later
Shaped& shaped_of(std::string_view text, ImU32 color, const Face& face = {}) {
    Store& store = *store_of_window();
    const auto find = [&](ImU32 of) -> Shaped& {
        std::string key = key_of(text, face) + std::to_string(of & 0xffffffu);
        const auto found = store.texts.find(key);
        if (found != store.texts.end()) return found->second;
        store.shrink();
        Shaped& made = store.texts[std::move(key)] =
            set(std::string(text), pango_pixels(face), face.is_mono(), ImGui::ColorConvertU32ToFloat4(of));
        store.bytes += made.bytes();
        return made;
    };
    Shaped* shaped = &find(IM_COL32_WHITE);
    shaped->used = ImGui::GetFrameCount();
    if (shaped->is_colored && (color & 0xffffffu) != 0xffffffu) {
        shaped = &find(color);
        shaped->used = ImGui::GetFrameCount();
        shaped->is_colored = true;
    }
    return *shaped;
}

struct Edges {
    std::vector<float> of_bytes;

    explicit Edges(size_t n_bytes) : of_bytes(n_bytes + 1, 0.0f) {}
    void set(size_t at, size_t bytes, int from, int to) {
        for (size_t i = 0; i < bytes && at + i + 1 < of_bytes.size(); ++i) {
            const float share = static_cast<float>(i) / static_cast<float>(bytes);
            of_bytes[at + i] = (static_cast<float>(from) + static_cast<float>(to - from) * share) / PANGO_SCALE;
        }
        if (at + bytes + 1 >= of_bytes.size()) of_bytes.back() = static_cast<float>(to) / PANGO_SCALE;
    }
};

/// Measures each of Pango's runs once. The width of a cluster is divided evenly among its letters.
std::vector<float> edges_by_runs(const PangoLayoutLine& line, const std::string& text) {
    Edges edges(text.size());
    int left = 0;
    for (GSList* run = line.runs; run; run = run->next) {
        auto* glyphs = static_cast<PangoGlyphItem*>(run->data);
        const PangoItem& item = *glyphs->item;
        std::vector<int> widths(static_cast<size_t>(item.num_chars));
        pango_glyph_item_get_logical_widths(glyphs, text.c_str(), widths.data());
        const int right = std::accumulate(widths.begin(), widths.end(), left);
        const bool is_leftwards = item.analysis.level % 2 == 1;
        int from = is_leftwards ? right : left;
        auto at = static_cast<size_t>(item.offset);
        for (const int width : widths) {
            const size_t bytes = decode_utf8_character(text, at).bytes;
            const int to = is_leftwards ? from - width : from + width;
            edges.set(at, bytes, from, to);
            at += bytes;
            from = to;
        }
        left = right;
    }
    return edges.of_bytes;
}

std::vector<float> measure_edges(const std::string& text, float pixels, bool mono) {
    // Each query of Pango scans the line from its beginning, which is too slow for long texts.
    constexpr size_t most_questions = 2000;  // in bytes
    const Layout layout = make_layout(text, pixels, mono);
    PangoLayoutLine* line = pango_layout_get_line_readonly(layout.get(), 0);
    if (text.size() > most_questions) return edges_by_runs(*line, text);
    Edges edges(text.size());
    for (size_t at = 0; at < text.size();) {
        const size_t bytes = decode_utf8_character(text, at).bytes;
        int from = 0;
        int to = 0;
        pango_layout_line_index_to_x(line, static_cast<int>(at), FALSE, &from);
        pango_layout_line_index_to_x(line, static_cast<int>(at), TRUE, &to);
        edges.set(at, bytes, from, to);
        at += bytes;
    }
    return edges.of_bytes;
}

void draw_shaped(ImDrawList* list, ImVec2 at, ImU32 color, std::string_view text, float left, float right,
                 float squeeze, const Face& face) {
    const Shaped& shaped = shaped_of(text, color, face);
    const float scale = framebuffer_scale();
    const auto width = static_cast<float>(shaped.width);
    // The first and the last piece include the ink that extends beyond the text's ends.
    const float from = left <= 0 ? 0 : left * scale - shaped.left;
    const float to = right * scale >= shaped.advance ? width : right * scale - shaped.left;
    if (to <= from) return;
    const float baseline = at.y + face.ascent();
    const ImVec2 origin{std::round(at.x + shaped.left / scale * squeeze), std::round(baseline + shaped.top / scale)};
    const ImVec2 low{origin.x + from / scale * squeeze, origin.y};
    const ImVec2 high{origin.x + to / scale * squeeze, origin.y + static_cast<float>(shaped.height) / scale};
    const ImU32 tint = shaped.is_colored ? (color | 0xffffffu) : color;
    list->AddImage(static_cast<ImTextureID>(shaped.texture), low, high, {from / width, 0}, {to / width, 1}, tint);
}

float width_of(std::string_view text, const Face& face) {
    if (needs_shaping(text, face.font)) return shaped_of(text, IM_COL32_WHITE, face).advance / framebuffer_scale();
    return ImFontCalcTextSizeEx(face.font, face.size, FLT_MAX, 0, text.data(), nullptr, text.data() + text.size(),
                                nullptr, nullptr, ImDrawTextFlags_None)
        .x;
}

const std::vector<size_t>& line_starts(std::string_view paragraph, float width, const Face& face) {
    constexpr size_t most_paragraphs = 1000;
    auto& known = store_of_window()->line_starts;
    std::string key = key_of(paragraph, face) + ' ' + std::to_string(width);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
    if (known.size() >= most_paragraphs) known.clear();
    std::vector<size_t>& starts = known[std::move(key)] = {0};
    // Pango replaces invalid bytes by longer sequences, so its positions would not fit the text.
    if (!g_utf8_validate(paragraph.data(), static_cast<gssize>(paragraph.size()), nullptr)) return starts;
    const Layout layout = make_layout(std::string(paragraph), pango_pixels(face), face.is_mono());
    pango_layout_set_width(layout.get(), static_cast<int>(width * framebuffer_scale() * PANGO_SCALE));
    pango_layout_set_wrap(layout.get(), PANGO_WRAP_WORD_CHAR);
    starts.clear();
    for (const GSList* at = pango_layout_get_lines_readonly(layout.get()); at; at = at->next)
        starts.push_back(static_cast<size_t>(static_cast<const PangoLayoutLine*>(at->data)->start_index));
    return starts;
}

/// Splits a text into lines of the width that Pango measures. @param wrap_width 0 to split only at "\n"
std::vector<std::string_view> lines_of(std::string_view text, float wrap_width, const Face& face) {
    std::vector<std::string_view> lines;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view paragraph = text.substr(at, end - at);
        at = end + 1;
        if (wrap_width <= 0 || width_of(paragraph, face) <= wrap_width) {
            lines.push_back(paragraph);
        } else if (needs_shaping(paragraph, face.font)) {
            const std::vector<size_t>& starts = line_starts(paragraph, wrap_width, face);
            for (size_t i = 0; i < starts.size(); ++i) {
                const size_t next = i + 1 < starts.size() ? starts[i + 1] : paragraph.size();
                lines.push_back(paragraph.substr(starts[i], next - starts[i]));
            }
        } else {
            const char* last = paragraph.data() + paragraph.size();
            for (const char* from = paragraph.data(); from < last;) {
                const char* to = ImFontCalcWordWrapPositionEx(face.font, face.size, from, last, wrap_width);
                lines.emplace_back(from, to);
                from = ImTextCalcWordWrapNextLineStart(to, last);
            }
        }
    }
    return lines;
}

/// The positions between the code points of a text, with Pango's attributes.
struct Places {
    Layout layout;
    std::string_view text;
    const PangoLogAttr* attributes = nullptr;
    int count = 0;  ///< number of positions

    explicit Places(std::string_view of) : layout(make_layout(std::string(of), 16, false)), text(of) {
        attributes = pango_layout_get_log_attrs_readonly(layout.get(), &count);
    }
    bool is_leftwards() const {
        PangoLayoutLine* line = pango_layout_get_line_readonly(layout.get(), 0);
        return pango_layout_line_get_resolved_direction(line) == PANGO_DIRECTION_RTL;
    }
    size_t end_of(size_t at) const { return at + decode_utf8_character(text, at).bytes; }
    int place_of(size_t byte) const {
        int place = 0;
        for (size_t at = 0; at < std::min(byte, text.size()) && place + 1 < count; at = end_of(at)) ++place;
        return place;
    }
    size_t byte_of(int place) const {
        size_t at = 0;
        while (place-- > 0 && at < text.size()) at = end_of(at);
        return at;
    }
};

}  // namespace

std::pair<float, float> reach_of_bytes(std::span<const float> edges, size_t begin, size_t end) {
    const auto [low, high] = std::minmax_element(edges.begin() + static_cast<ptrdiff_t>(begin),
                                                 edges.begin() + static_cast<ptrdiff_t>(end) + 1);
    return {*low, *high};
}

bool needs_shaping(std::string_view text, ImFont* font) {
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    if (std::ranges::all_of(text, is_ascii)) return false;
    if (!font) font = ImGui::GetFont();
    for (size_t at = 0; at < text.size();) {
        const auto [c, bytes, is_valid] = decode_utf8_character(text, at);
        if (!is_valid) return false;
        if (c >= 0x80 && (analysis::joins_neighbours(c) || !font_has(font, c))) return true;
        at += bytes;
    }
    return false;
}

void draw_text(ImDrawList* list, ImVec2 at, ImU32 color, std::string_view text, float most) {
    const float width = most > 0 && needs_shaping(text) ? text_width(text) : 0;
    if (width > most)
        draw_text_between(list, at, color, text, 0, width, most / width);
    else
        list->AddText(at, color, text.data(), text.data() + text.size());
}

void draw_text_between(ImDrawList* list, ImVec2 at, ImU32 color, std::string_view text, float left, float right,
                       float squeeze) {
    draw_shaped(list, at, color, text, left, right, squeeze, Face{});
}

float text_width(std::string_view text) { return width_of(text, Face{}); }

std::span<const float> byte_edges(std::string_view text) {
    Shaped& shaped = shaped_of(text, IM_COL32_WHITE);
    if (shaped.edges.empty()) {
        shaped.edges = measure_edges(std::string(text), pango_pixels(Face{}), Face{}.is_mono());
        for (float& edge : shaped.edges) edge /= framebuffer_scale();
    }
    return shaped.edges;
}

void text_item(std::string_view text) { ImGui::TextUnformatted(text.data(), text.data() + text.size()); }

size_t end_of_character(std::string_view text, size_t begin) {
    utf8proc_int32_t state = 0;
    for (size_t at = begin; at < text.size();) {
        const Utf8Character character = decode_utf8_character(text, at);
        at += character.bytes;
        if (at >= text.size()) break;
        const Utf8Character next = decode_utf8_character(text, at);
        if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(character.code),
                                             static_cast<utf8proc_int32_t>(next.code), &state))
            return at;
    }
    return text.size();
}

size_t find_backspace_start(std::string_view text, size_t end) {
    const Places places(text);
    int place = places.place_of(end);
    if (place == 0) return 0;
    const bool erases_one = places.attributes[place].backspace_deletes_character;
    do {
        --place;
    } while (place > 0 && !erases_one && !places.attributes[place].is_cursor_position);
    return places.byte_of(place);
}

size_t move_caret_by_character(std::string_view text, size_t byte, int direction) {
    const Places places(text);
    int index = static_cast<int>(byte);
    int trailing = 0;
    pango_layout_move_cursor_visually(places.layout.get(), TRUE, index, 0, direction, &index, &trailing);
    if (index >= 0 && index < G_MAXINT) return places.byte_of(places.place_of(static_cast<size_t>(index)) + trailing);
    const bool is_forwards = places.is_leftwards() == (direction < 0);
    return is_forwards ? text.size() + 1 : std::string_view::npos;
}

size_t move_caret_by_word(std::string_view text, size_t byte, int direction) {
    const Places places(text);
    const bool is_forwards = places.is_leftwards() == (direction < 0);
    const int last = places.count - 1;
    int place = places.place_of(byte);
    if (place == (is_forwards ? last : 0)) return is_forwards ? text.size() + 1 : std::string_view::npos;
    do {
        place += is_forwards ? 1 : -1;
    } while (place > 0 && place < last && !places.attributes[place].is_word_start);
    return places.byte_of(place);
}

size_t bytes_that_fit(std::string_view text, float width) {
    std::vector<size_t> ends;
    for (size_t at = 0; at < text.size();) ends.push_back(at = end_of_character(text, at));
    const auto too_wide = std::partition_point(ends.begin(), ends.end(),
                                               [&](size_t end) { return text_width(text.substr(0, end)) <= width; });
    return too_wide == ends.begin() ? ends.front() : *std::prev(too_wide);
}

std::string beginning_that_fits(const std::string& text, float width) {
    const size_t line = std::min(text.find('\n'), text.size());
    if (line == text.size() && text_width(text) <= width) return text;
    constexpr size_t most = 400;  // in bytes; more than fit on any line of the screen
    std::vector<size_t> ends;     // ends of characters
    for (size_t end = 1; end <= std::min(line, most); ++end)
        if (end == text.size() || (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80) ends.push_back(end);
    const auto beginning = [&](size_t end) { return text.substr(0, end) + "…"; };
    const auto too_wide =
        std::partition_point(ends.begin(), ends.end(), [&](size_t end) { return text_width(beginning(end)) <= width; });
    return too_wide == ends.begin() ? "…" : beginning(*std::prev(too_wide));
}

}  // namespace kvscope::gui

// cmake/Imgui.cmake renames Dear ImGui's functions, so that the functions below draw and measure all text.

void ImDrawList::AddText(ImFont* font, float size, const ImVec2& at, ImU32 color, const char* begin, const char* end,
                         float wrap_width, const ImVec4* clip) {
    using namespace kvscope::gui;
    if ((color & IM_COL32_A_MASK) == 0 || begin == end) return;
    const std::string_view text = end ? std::string_view(begin, end) : std::string_view(begin);
    const Face face{font ? font : _Data->Font, size == 0 ? _Data->FontSize : size};
    ImVec4 seen = _CmdHeader.ClipRect;
    if (clip)
        seen = {std::max(seen.x, clip->x), std::max(seen.y, clip->y), std::min(seen.z, clip->z),
                std::min(seen.w, clip->w)};
    const auto draw_plain = [&](ImVec2 from, std::string_view plain, float width) {
        face.font->RenderText(this, face.size, from, color, seen, plain.data(), plain.data() + plain.size(), width,
                              clip ? ImDrawTextFlags_CpuFineClip : ImDrawTextFlags_None);
    };
    if (!needs_shaping(text, face.font)) {
        if (!text.empty()) draw_plain(at, text, wrap_width);
        return;
    }
    if (clip) PushClipRect({seen.x, seen.y}, {seen.z, seen.w});
    float y = at.y;
    for (const std::string_view line : lines_of(text, wrap_width, face)) {
        const bool is_seen = y + 2 * face.size >= seen.y && y - face.size <= seen.w && !line.empty();
        if (is_seen && needs_shaping(line, face.font))
            draw_shaped(this, {at.x, y}, color, line, 0, FLT_MAX, 1, face);
        else if (is_seen)
            draw_plain({at.x, y}, line, 0);
        y += face.size;
    }
    if (clip) PopClipRect();
}

void ImDrawList::AddText(const ImVec2& at, ImU32 color, const char* begin, const char* end) {
    AddText(nullptr, 0, at, color, begin, end);
}

ImVec2 ImFont::CalcTextSizeA(float size, float most, float wrap_width, const char* begin, const char* end,
                             const char** rest) {
    using namespace kvscope::gui;
    const std::string_view text = end ? std::string_view(begin, end) : std::string_view(begin);
    if (!needs_shaping(text, this))
        return ImFontCalcTextSizeEx(this, size, most, wrap_width, begin, end, end, rest, nullptr, ImDrawTextFlags_None);
    const Face face{this, size};
    ImVec2 extent{0, 0};
    for (std::string_view line : lines_of(text, wrap_width, face)) {
        if (width_of(line, face) > most) line = line.substr(0, bytes_that_fit(line, most));
        extent = {std::max(extent.x, width_of(line, face)), extent.y + size};
        if (rest) *rest = line.data() + line.size();
    }
    return extent;
}
