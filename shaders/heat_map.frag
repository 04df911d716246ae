#version 330 core
uniform sampler2D cells;     // a level's values in strips
uniform sampler2D colors;    // the colour table, one row
uniform ivec3 size;          // rows, columns of this level, columns of a strip
uniform vec4 window;         // left, right, top, bottom in cells of this level
uniform vec2 cells_a_pixel;  // of this level
uniform vec4 scale;          // min, max, begin and end of the colour table's part in use
uniform ivec4 mode;          // 1: logarithmic; 1: ground below min; 1: classes; 0: maximum, 1: largest magnitude
uniform vec4 ground;
in vec2 place;
out vec4 color;

const int most_columns = 4;  // a level has at most two cells a pixel, and edges
const int most_rows = 64;

float cell(int row, int column) {
    return texelFetch(cells, ivec2(column % size.z, column / size.z * size.x + row), 0).r;
}

float reduced(float a, float b) {
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    if (mode.w == 0) return max(a, b);
    return abs(b) > abs(a) ? b : a;
}

void main() {
    vec2 center = vec2(mix(window.x, window.y, place.x), mix(window.z, window.w, place.y));
    if (center.x < 0.0 || center.y < 0.0 || center.x >= float(size.y) || center.y >= float(size.x)) {
        color = ground;
        return;
    }
    ivec2 first = ivec2(floor(center));
    ivec2 last = first;
    if (cells_a_pixel.x > 1.0) {
        first.x = int(floor(center.x - 0.5 * cells_a_pixel.x));
        last.x = int(ceil(center.x + 0.5 * cells_a_pixel.x)) - 1;
    }
    if (cells_a_pixel.y > 1.0) {
        first.y = int(floor(center.y - 0.5 * cells_a_pixel.y));
        last.y = int(ceil(center.y + 0.5 * cells_a_pixel.y)) - 1;
    }
    first = max(first, ivec2(0));
    last = min(min(last, ivec2(size.y, size.x) - 1), first + ivec2(most_columns, most_rows) - 1);
    float value = cell(first.y, first.x);
    for (int column = first.x + 1; column <= last.x; ++column) value = reduced(value, cell(first.y, column));
    for (int row = first.y + 1; row <= last.y; ++row) {
        for (int column = first.x; column <= last.x; ++column) value = reduced(value, cell(row, column));
    }
    if (isnan(value) || (mode.y == 1 && value < scale.x)) {
        color = ground;
        return;
    }
    int entries = textureSize(colors, 0).x;
    if (mode.z == 1) {
        color = texelFetch(colors, ivec2(clamp(int(value), 0, entries - 1), 0), 0);
        return;
    }
    float share = mode.x == 1 ? log(max(value, 1e-30) / scale.x) / log(scale.y / scale.x)
                              : (value - scale.x) / (scale.y - scale.x);
    float at = mix(scale.z, scale.w, clamp(share, 0.0, 1.0));
    color = texelFetch(colors, ivec2(int(at * float(entries - 1) + 0.5), 0), 0);
}
