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
    ImVec2 cells_a_pixel;
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

void draw_call(const ImDrawList*, const ImDrawCmd* command) {
    const Call& call = *static_cast<const Call*>(command->UserCallbackData);
    const ImDrawData* data = ImGui::GetMainViewport()->DrawData;
    const ImVec2 origin = data->DisplayPos;
    const ImVec2 pixels = data->FramebufferScale;
    const float height = data->DisplaySize.y * pixels.y;
    const ImVec4& clip = command->ClipRect;
    const float clip_left = std::max((clip.x - origin.x) * pixels.x, 0.0f);
    const float clip_right = std::max((clip.z - origin.x) * pixels.x, clip_left);
    const float clip_top = std::max((clip.y - origin.y) * pixels.y, 0.0f);
    const float clip_bottom = std::max((clip.w - origin.y) * pixels.y, clip_top);
    glScissor(static_cast<int>(clip_left), static_cast<int>(height - clip_bottom),
              static_cast<int>(clip_right - clip_left), static_cast<int>(clip_bottom - clip_top));
    glEnable(GL_SCISSOR_TEST);
    glDisable(GL_BLEND);

    Program& program = program_of_window();
    glUseProgram(program.program);
    glBindVertexArray(program.vertices);
    const auto across = [&](float x) { return 2 * (x - origin.x) / data->DisplaySize.x - 1; };
    const auto down = [&](float y) { return 1 - 2 * (y - origin.y) / data->DisplaySize.y; };
    glUniform4f(program.rectangle, across(call.min.x), down(call.min.y), across(call.max.x), down(call.max.y));
    glUniform3i(program.size, call.rows, call.columns, HeatMap::strip_columns);
    glUniform4f(program.window, static_cast<float>(call.window.left), static_cast<float>(call.window.right),
                static_cast<float>(call.window.top), static_cast<float>(call.window.bottom));
    glUniform2f(program.cells_a_pixel, call.cells_a_pixel.x / pixels.x, call.cells_a_pixel.y / pixels.y);
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
    call.cells_a_pixel = {static_cast<float>(a_pixel / factor),
                          static_cast<float>(std::abs(window.bottom - window.top) / (max.y - min.y))};
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
