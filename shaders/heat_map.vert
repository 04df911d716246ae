#version 330 core
// A rectangle without a vertex buffer: corners 0 to 3 of a triangle strip.
uniform vec4 rectangle;  // left, top, right, bottom in normalised device coordinates
out vec2 place;          // 0 to 1 from the upper left corner

void main() {
    place = vec2(gl_VertexID & 1, gl_VertexID >> 1);
    gl_Position = vec4(mix(rectangle.xy, rectangle.zw, place), 0.0, 1.0);
}
