#include "app/gui/drawing/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

#include "app/gui/drawing/shaders.h"
#include "app/gui/drawing/texture.h"

namespace kvscope::gui {

namespace {

GLuint compile(GLenum kind, const char* text) {
    const GLuint shader = glCreateShader(kind);
    glShaderSource(shader, 1, &text, nullptr);
    glCompileShader(shader);
    GLint compiled = 0;
    glGetShaderiv(shader, GL_COMPILE_STATUS, &compiled);
    if (!compiled) {
        std::array<char, 2000> log{};
        glGetShaderInfoLog(shader, log.size(), nullptr, log.data());
        throw std::runtime_error(std::string("the graphics driver refuses the heat map's shader: ") + log.data());
    }
    return shader;
}

struct Program {
    GLuint program = 0;
    GLuint vertices = 0;
    GLint rectangle, cells, colors, size, window, cells_a_pixel, scale, mode, ground;
    std::map<analysis::ColorMap, GLuint> tables;
    GLuint frame_buffer = 0;

    Program() {
        const GLuint vertex = compile(GL_VERTEX_SHADER, shaders::heat_map_vert);
        const GLuint fragment = compile(GL_FRAGMENT_SHADER, shaders::heat_map_frag);
        program = glCreateProgram();
        glAttachShader(program, vertex);
        glAttachShader(program, fragment);
        glLinkProgram(program);
        glDeleteShader(vertex);
        glDeleteShader(fragment);
        glGenVertexArrays(1, &vertices);
        glGenFramebuffers(1, &frame_buffer);
        rectangle = glGetUniformLocation(program, "rectangle");
        cells = glGetUniformLocation(program, "cells");
        colors = glGetUniformLocation(program, "colors");
        size = glGetUniformLocation(program, "size");
        window = glGetUniformLocation(program, "window");
        cells_a_pixel = glGetUniformLocation(program, "cells_a_pixel");
        scale = glGetUniformLocation(program, "scale");
        mode = glGetUniformLocation(program, "mode");
        ground = glGetUniformLocation(program, "ground");
    }

    static GLuint texture(GLint format, int width, int height, GLenum layout, GLenum type, const void* data) {
        GLuint made = 0;
        fill_texture(made, GL_NEAREST, format, width, height, layout, type, data);
        return made;
    }

    GLuint table(analysis::ColorMap map) {
        GLuint& made = tables[map];
        if (!made) {
            const auto entries = analysis::color_table(map);
            made = texture(GL_RGB8, static_cast<int>(entries.size()), 1, GL_RGB, GL_UNSIGNED_BYTE, entries.data());
        }
        return made;
    }
};

Program& program_of_window() {
    static Program program;
    return program;
}

bool is_whole(double value) { return value == std::floor(value); }

void draw_cells(GLuint picture, int width, int height, GLuint level, int rows, int columns, const MapWindow& window,
                Reduce reduce, const MapColors& look) {
    GLint frame_buffer = 0;
    std::array<GLint, 4> viewport{};
    glGetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &frame_buffer);
    glGetIntegerv(GL_VIEWPORT, viewport.data());
    Program& program = program_of_window();
    glBindFramebuffer(GL_FRAMEBUFFER, program.frame_buffer);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, picture, 0);
    glViewport(0, 0, width, height);
    glDisable(GL_SCISSOR_TEST);
    glDisable(GL_BLEND);
    glUseProgram(program.program);
    glBindVertexArray(program.vertices);
    glUniform4f(program.rectangle, -1, -1, 1, 1);  // the first row of the picture is the top of the section
    glUniform3i(program.size, rows, columns, HeatMap::strip_columns);
    glUniform4f(program.window, static_cast<float>(window.left), static_cast<float>(window.right),
                static_cast<float>(window.top), static_cast<float>(window.bottom));
    glUniform2f(program.cells_a_pixel, static_cast<float>(std::abs(window.right - window.left) / width),
                static_cast<float>(std::abs(window.bottom - window.top) / height));
    glUniform4f(program.scale, look.min, look.max > look.min ? look.max : look.min + 1, look.map_begin, look.map_end);
    glUniform4i(program.mode, look.logarithmic, look.ground_below_min, !look.classes.empty(),
                reduce == Reduce::maximum ? 0 : 1);
    const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(look.ground);
    glUniform4f(program.ground, ground.x, ground.y, ground.z, ground.w);
    glUniform1i(program.cells, 0);
    glUniform1i(program.colors, 1);
    GLuint classes = 0;
    glActiveTexture(GL_TEXTURE1);
    if (!look.classes.empty()) {
        classes = Program::texture(GL_RGBA8, static_cast<int>(look.classes.size()), 1, GL_RGBA, GL_UNSIGNED_BYTE,
                                   look.classes.data());
    }
    glBindTexture(GL_TEXTURE_2D, classes ? classes : program.table(look.map));
    glActiveTexture(GL_TEXTURE0);
    glBindTexture(GL_TEXTURE_2D, level);
    glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
    if (classes) glDeleteTextures(1, &classes);
    glBindFramebuffer(GL_FRAMEBUFFER, static_cast<GLuint>(frame_buffer));
    glViewport(viewport[0], viewport[1], viewport[2], viewport[3]);
}

/// Larger pictures are copied without Dear ImGui's blending, which is slow on software renderers.
constexpr int least_copied_pixels = 100'000;

struct Copy {
    GLuint picture = 0;
    int width = 0, height = 0;
    ImVec2 min, max;
};

void copy_picture(const ImDrawList*, const ImDrawCmd* command) {
    const Copy& copy = *static_cast<const Copy*>(command->UserCallbackData);
    const ImDrawData* data = ImGui::GetMainViewport()->DrawData;
    const ImVec2 origin = data->DisplayPos;
    const ImVec2 pixels = data->FramebufferScale;
    const float frame_height = data->DisplaySize.y * pixels.y;
    const auto across = [&](float x) { return static_cast<int>(std::lround((x - origin.x) * pixels.x)); };
    const auto up = [&](float y) { return static_cast<int>(std::lround(frame_height - (y - origin.y) * pixels.y)); };
    const ImVec4& clip = command->ClipRect;
    const int clip_left = std::max(across(clip.x), 0);
    const int clip_bottom = std::max(up(clip.w), 0);
    glEnable(GL_SCISSOR_TEST);
    glScissor(clip_left, clip_bottom, std::max(across(clip.z) - clip_left, 0), std::max(up(clip.y) - clip_bottom, 0));
    glBindFramebuffer(GL_READ_FRAMEBUFFER, program_of_window().frame_buffer);
    glFramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, copy.picture, 0);
    glBlitFramebuffer(0, 0, copy.width, copy.height, across(copy.min.x), up(copy.min.y), across(copy.max.x),
                      up(copy.max.y), GL_COLOR_BUFFER_BIT, GL_NEAREST);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, 0);
}

}  // namespace

ImU32 map_value_to_color(const MapColors& colors, float value) {
    if (std::isnan(value) || (colors.ground_below_min && value < colors.min)) return colors.ground;
    if (!colors.classes.empty()) {
        const auto last = static_cast<float>(colors.classes.size() - 1);
        return colors.classes[static_cast<size_t>(std::clamp(value, 0.0f, last))];
    }
    const float share = colors.logarithmic
                            ? std::log(std::max(value, 1e-30f) / colors.min) / std::log(colors.max / colors.min)
                            : (value - colors.min) / (colors.max - colors.min);
    if (std::isnan(share)) return colors.ground;  // the limits are infinite or equal
    const float at = colors.map_begin + (colors.map_end - colors.map_begin) * std::clamp(share, 0.0f, 1.0f);
    const auto table = analysis::color_table(colors.map);
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): lround() takes longer, and this runs for each cell
    const auto entry = table[static_cast<size_t>(at * static_cast<float>(table.size() - 1) + 0.5f)];
    return IM_COL32(entry.r, entry.g, entry.b, 255);
}

HeatMap::HeatMap(const Pyramid& pyramid) : rows_(pyramid.rows), columns_(pyramid.columns()), reduce_(pyramid.reduce) {
    const auto rows = static_cast<int>(rows_);
    for (const auto& level : pyramid.levels) {
        const auto columns = static_cast<int>(level.columns);
        if (columns == 0 || rows == 0) break;
        const int width = std::min(columns, strip_columns);
        const int strips = (columns + strip_columns - 1) / strip_columns;
        GLint most = 0;
        glGetIntegerv(GL_MAX_TEXTURE_SIZE, &most);
        if (strips * rows > most) {
            throw std::runtime_error("this map of " + std::to_string(rows) + " x " + std::to_string(columns) +
                                     " cells exceeds the graphics driver's limit of " + std::to_string(most) +
                                     " texture rows: show fewer layers or heads");
        }
        const GLuint texture = Program::texture(GL_R32F, width, strips * rows, GL_RED, GL_FLOAT, nullptr);
        glPixelStorei(GL_UNPACK_ROW_LENGTH, columns);
        for (int strip = 0; strip < strips; ++strip) {
            const int first = strip * strip_columns;
            glTexSubImage2D(GL_TEXTURE_2D, 0, 0, strip * rows, std::min(columns - first, strip_columns), rows, GL_RED,
                            GL_FLOAT, level.values.data() + first);
        }
        glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
        levels_.push_back({texture, columns});
    }
}

HeatMap::~HeatMap() {
    for (const Level& level : levels_) delete_after_frame(level.texture);
    for (const Picture& picture : pictures_) delete_after_frame(picture.texture);
}

HeatMap::Picture& HeatMap::picture_for(const MapWindow& window, const MapColors& colors, int width, int height) const {
    const int frame = ImGui::GetFrameCount();
    const auto fits = [&](const Picture& p) {
        return p.width == width && p.height == height && p.window == window && p.colors == colors;
    };
    auto found = std::ranges::find_if(pictures_, fits);
    // Reuses a picture that was not drawn in the previous frame.
    if (found == pictures_.end())
        found = std::ranges::find_if(pictures_, [&](const Picture& p) { return p.frame < frame - 1; });
    if (found == pictures_.end()) found = pictures_.emplace(pictures_.end());
    found->frame = frame;
    return *found;
}

void HeatMap::draw(ImDrawList* list, ImVec2 min, ImVec2 max, const MapWindow& window, const MapColors& colors) const {
    const ImVec2 pixels = ImGui::GetIO().DisplayFramebufferScale;
    min = {std::round(min.x * pixels.x) / pixels.x, std::round(min.y * pixels.y) / pixels.y};
    max = {std::round(max.x * pixels.x) / pixels.x, std::round(max.y * pixels.y) / pixels.y};
    const int width = static_cast<int>(std::lround((max.x - min.x) * pixels.x));
    const int height_on_screen = static_cast<int>(std::lround((max.y - min.y) * pixels.y));
    if (levels_.empty() || width <= 0 || height_on_screen <= 0) return;
    // If rows are higher than a pixel, one pixel per row is enough: the GPU stretches the picture.
    const double rows_shown = std::abs(window.bottom - window.top);
    const bool rows_are_whole = is_whole(window.top) && is_whole(window.bottom);
    const int height =
        rows_are_whole && rows_shown < height_on_screen ? static_cast<int>(rows_shown) : height_on_screen;

    Picture& picture = picture_for(window, colors, width, height);
    if (picture.width != width || picture.height != height) {
        delete_after_frame(picture.texture);
        picture.texture = Program::texture(GL_RGBA8, width, height, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
        picture.is_drawn = false;
    }
    if (!picture.is_drawn || picture.window != window || picture.colors != colors) {
        const double a_pixel = std::abs(window.right - window.left) / width;
        const auto wanted = a_pixel > 1 ? static_cast<size_t>(std::floor(std::log2(a_pixel))) : 0;
        const size_t chosen = std::min(wanted, levels_.size() - 1);
        const double factor = static_cast<double>(size_t{1} << chosen);
        draw_cells(picture.texture, width, height, levels_[chosen].texture, static_cast<int>(rows_),
                   levels_[chosen].columns, {window.left / factor, window.right / factor, window.top, window.bottom},
                   reduce_, colors);
    }
    picture.width = width;
    picture.height = height;
    picture.window = window;
    picture.colors = colors;
    picture.is_drawn = true;
    if (width * height_on_screen >= least_copied_pixels) {
        Copy copy{picture.texture, width, height, min, max};
        list->AddCallback(copy_picture, &copy, sizeof copy);
        list->AddCallback(ImDrawCallback_ResetRenderState, nullptr);
        return;
    }
    const ImGuiPlatformIO& platform = ImGui::GetPlatformIO();
    list->AddCallback(platform.DrawCallback_SetSamplerNearest, nullptr);
    list->AddImage(static_cast<ImTextureID>(picture.texture), min, max);
    list->AddCallback(platform.DrawCallback_SetSamplerLinear, nullptr);
}

namespace {

constexpr size_t smallest_level = 64;

template <class Combine>
std::vector<float> halved(const std::vector<float>& in, size_t rows, size_t columns, Combine combine) {
    const size_t half = (columns + 1) / 2;
    std::vector<float> out(rows * half);
    for (size_t row = 0; row < rows; ++row) {
        const float* from = in.data() + row * columns;
        float* to = out.data() + row * half;
        for (size_t i = 0; i < columns / 2; ++i) to[i] = combine(from[2 * i], from[2 * i + 1]);
        if (columns % 2 != 0) to[half - 1] = from[columns - 1];
    }
    return out;
}

}  // namespace

float combine_cells(Reduce reduce, float a, float b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (reduce == Reduce::maximum) return std::max(a, b);
    return std::abs(b) > std::abs(a) ? b : a;
}

Pyramid make_pyramid(std::vector<float> values, size_t rows, size_t columns, Reduce reduce) {
    if (values.size() != rows * columns) {
        throw std::invalid_argument(fmt::format("a map of {} x {} cells needs one value per cell, found {} values",
                                                rows, columns, values.size()));
    }
    Pyramid pyramid{rows, reduce, {}};
    pyramid.levels.push_back({columns, std::move(values)});
    while (pyramid.levels.back().columns > smallest_level) {
        const auto& last = pyramid.levels.back();
        auto next = reduce == Reduce::maximum
                        // like combine_cells(), fmax ignores a single NaN
                        ? halved(last.values, rows, last.columns, [](float a, float b) { return std::fmax(a, b); })
                        : halved(last.values, rows, last.columns,
                                 [](float a, float b) { return combine_cells(Reduce::largest_magnitude, a, b); });
        pyramid.levels.push_back({(last.columns + 1) / 2, std::move(next)});
    }
    return pyramid;
}

}  // namespace kvscope::gui
