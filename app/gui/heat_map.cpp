#include "app/gui/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

#include "app/gui/gl.h"
#include "app/gui/shaders.h"

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

/// The shader with the places of its uniforms; one for all maps, as long as the window lives.
struct Program {
    GLuint program = 0;
    GLuint vertices = 0;
    GLint rectangle, cells, colors, size, window, cells_a_pixel, scale, mode, ground;
    std::map<analysis::ColorMap, GLuint> tables;
    GLuint strip_buffer = 0;  ///< where a map is drawn with a pixel for each row, before it is stretched
    GLuint strip_texture = 0;
    int strip_width = 0;
    int strip_height = 0;

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
        glGenTextures(1, &made);
        glBindTexture(GL_TEXTURE_2D, made);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
        glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
        glTexImage2D(GL_TEXTURE_2D, 0, format, width, height, 0, layout, type, data);
        return made;
    }

    /// Makes the strip at least this large and draws into it from now on.
    void draw_into_strip(int width, int height) {
        if (width > strip_width || height > strip_height) {
            if (strip_texture) glDeleteTextures(1, &strip_texture);
            if (!strip_buffer) glGenFramebuffers(1, &strip_buffer);
            strip_width = std::max(width, strip_width);
            strip_height = std::max(height, strip_height);
            strip_texture = texture(GL_RGBA8, strip_width, strip_height, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
            glBindFramebuffer(GL_FRAMEBUFFER, strip_buffer);
            glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, strip_texture, 0);
        }
        glBindFramebuffer(GL_FRAMEBUFFER, strip_buffer);
        glViewport(0, 0, width, height);
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

/// What the draw callback needs; copied into the draw list.
struct Call {
    ImVec2 min, max;
    MapWindow window;
    GLuint texture;
    int rows, columns;
    int reduce;
    analysis::ColorMap map;
    float map_begin, map_end, value_min, value_max;
    bool logarithmic, ground_below_min;
    ImU32 ground;
    int n_classes;
    std::array<ImU32, 8> classes;
};

bool is_whole(double value) { return value == std::floor(value); }

/// Draws the map with one pixel for each row where rows are higher than that, then stretches it to its rectangle: the
/// shader looks at few cells a pixel, but at as few pixels as there are different ones.
void draw_call(const ImDrawList*, const ImDrawCmd* command) {
    const Call& call = *static_cast<const Call*>(command->UserCallbackData);
    const ImDrawData* data = ImGui::GetMainViewport()->DrawData;
    const ImVec2 origin = data->DisplayPos;
    const ImVec2 pixels = data->FramebufferScale;
    const float frame_height = data->DisplaySize.y * pixels.y;
    const auto across = [&](float x) { return static_cast<int>(std::lround((x - origin.x) * pixels.x)); };
    const auto up = [&](float y) { return static_cast<int>(std::lround(frame_height - (y - origin.y) * pixels.y)); };
    const int left = across(call.min.x);
    const int right = across(call.max.x);
    const int top = up(call.min.y);
    const int bottom = up(call.max.y);
    if (right <= left || top <= bottom) return;
    const double rows_shown = std::abs(call.window.bottom - call.window.top);
    const bool rows_are_whole = is_whole(call.window.top) && is_whole(call.window.bottom);
    const int width = right - left;
    const int height = rows_are_whole && rows_shown < top - bottom ? static_cast<int>(rows_shown) : top - bottom;

    GLint frame_buffer = 0;
    std::array<GLint, 4> viewport{};
    glGetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &frame_buffer);
    glGetIntegerv(GL_VIEWPORT, viewport.data());
    glDisable(GL_SCISSOR_TEST);
    glDisable(GL_BLEND);
    Program& program = program_of_window();
    program.draw_into_strip(width, height);
    glUseProgram(program.program);
    glBindVertexArray(program.vertices);
    glUniform4f(program.rectangle, -1, 1, 1, -1);
    glUniform3i(program.size, call.rows, call.columns, HeatMap::strip_columns);
    glUniform4f(program.window, static_cast<float>(call.window.left), static_cast<float>(call.window.right),
                static_cast<float>(call.window.top), static_cast<float>(call.window.bottom));
    glUniform2f(program.cells_a_pixel, static_cast<float>(std::abs(call.window.right - call.window.left) / width),
                static_cast<float>(rows_shown / height));
    glUniform4f(program.scale, call.value_min, call.value_max, call.map_begin, call.map_end);
    glUniform4i(program.mode, call.logarithmic, call.ground_below_min, call.n_classes > 0, call.reduce);
    const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(call.ground);
    glUniform4f(program.ground, ground.x, ground.y, ground.z, ground.w);
    glUniform1i(program.cells, 0);
    glUniform1i(program.colors, 1);
    GLuint classes = 0;
    glActiveTexture(GL_TEXTURE1);
    if (call.n_classes > 0)
        classes = Program::texture(GL_RGBA8, call.n_classes, 1, GL_RGBA, GL_UNSIGNED_BYTE, call.classes.data());
    glBindTexture(GL_TEXTURE_2D, classes ? classes : program.table(call.map));
    glActiveTexture(GL_TEXTURE0);
    glBindTexture(GL_TEXTURE_2D, call.texture);
    glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
    if (classes) glDeleteTextures(1, &classes);

    const ImVec4& clip = command->ClipRect;
    const int clip_left = std::max(across(clip.x), 0);
    const int clip_bottom = std::max(up(clip.w), 0);
    glEnable(GL_SCISSOR_TEST);
    glScissor(clip_left, clip_bottom, std::max(across(clip.z) - clip_left, 0), std::max(up(clip.y) - clip_bottom, 0));
    glBindFramebuffer(GL_READ_FRAMEBUFFER, program.strip_buffer);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, static_cast<GLuint>(frame_buffer));
    glBlitFramebuffer(0, 0, width, height, left, bottom, right, top, GL_COLOR_BUFFER_BIT, GL_NEAREST);
    glBindFramebuffer(GL_FRAMEBUFFER, static_cast<GLuint>(frame_buffer));
    glViewport(viewport[0], viewport[1], viewport[2], viewport[3]);
}

}  // namespace

ImU32 color_of(const MapColors& colors, float value) {
    if (std::isnan(value) || (colors.ground_below_min && value < colors.min)) return colors.ground;
    if (!colors.classes.empty()) {
        const auto last = static_cast<float>(colors.classes.size() - 1);
        return colors.classes[static_cast<size_t>(std::clamp(value, 0.0f, last))];
    }
    const float share = colors.logarithmic
                            ? std::log(std::max(value, 1e-30f) / colors.min) / std::log(colors.max / colors.min)
                            : (value - colors.min) / (colors.max - colors.min);
    const float at = colors.map_begin + (colors.map_end - colors.map_begin) * std::clamp(share, 0.0f, 1.0f);
    const auto table = analysis::color_table(colors.map);
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
                                     " cells is larger than the graphics driver's " + std::to_string(most) +
                                     " rows of texture; show fewer layers or heads");
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
    for (const Level& level : levels_) glDeleteTextures(1, &level.texture);
}

void HeatMap::draw(ImDrawList* list, ImVec2 min, ImVec2 max, const MapWindow& window, const MapColors& colors) const {
    if (levels_.empty() || max.x <= min.x || max.y <= min.y) return;
    const double a_pixel = std::abs(window.right - window.left) / (max.x - min.x);
    const auto wanted = a_pixel > 1 ? static_cast<size_t>(std::floor(std::log2(a_pixel))) : 0;
    const size_t chosen = std::min(wanted, levels_.size() - 1);
    const double factor = static_cast<double>(size_t{1} << chosen);
    Call call{};
    call.min = min;
    call.max = max;
    call.window = {window.left / factor, window.right / factor, window.top, window.bottom};
    call.texture = levels_[chosen].texture;
    call.rows = static_cast<int>(rows_);
    call.columns = levels_[chosen].columns;
    call.reduce = reduce_ == Reduce::maximum ? 0 : 1;
    call.map = colors.map;
    call.map_begin = colors.map_begin;
    call.map_end = colors.map_end;
    call.value_min = colors.min;
    call.value_max = colors.max > colors.min ? colors.max : colors.min + 1;
    call.logarithmic = colors.logarithmic;
    call.ground_below_min = colors.ground_below_min;
    call.ground = colors.ground;
    call.n_classes = static_cast<int>(std::min(colors.classes.size(), call.classes.size()));
    std::copy_n(colors.classes.begin(), call.n_classes, call.classes.begin());
    list->AddCallback(draw_call, &call, sizeof call);
    list->AddCallback(ImDrawCallback_ResetRenderState, nullptr);
}

}  // namespace kvscope::gui
