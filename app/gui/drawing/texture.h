#pragma once

#include "app/gui/drawing/gl.h"

namespace kvscope::gui {

/// Gives a texture (made where it is 0) its pixels; rows lie at multiples of `alignment` bytes, edges are not repeated.
/// @param filter GL_NEAREST or GL_LINEAR
void fill_texture(GLuint& texture, GLint filter, GLint format, int width, int height, GLenum layout, GLenum type,
                  const void* pixels, int alignment = 1);

}  // namespace kvscope::gui
