#pragma once

#include "app/gui/drawing/gl.h"

namespace kvscope::gui {

/// Gives a texture (made where it is 0) its pixels; rows lie at multiples of `alignment` bytes, edges are not repeated.
/// @param filter GL_NEAREST or GL_LINEAR
void fill_texture(GLuint& texture, GLint filter, GLint format, int width, int height, GLenum layout, GLenum type,
                  const void* pixels, int alignment = 1);

/// Deletes a texture once the frame is drawn: a view that closes may have put it into the frame's lists already, and
/// those name it until then. 0: nothing. The window's thread, as all of these.
void delete_after_frame(GLuint texture);
/// When a frame is drawn, and before the window goes.
void delete_textures_of_drawn_frame();

}  // namespace kvscope::gui
