#pragma once

#include "app/gui/drawing/gl.h"

namespace kvscope::gui {

/// Uploads pixels to a texture. Creates the texture if its name is 0. @param filter GL_NEAREST or GL_LINEAR
void fill_texture(GLuint& texture, GLint filter, GLint format, int width, int height, GLenum layout, GLenum type,
                  const void* pixels, int alignment = 1);

/// Deletes a texture after the frame, because draw lists may still use it. 0 has no effect. UI thread only.
void delete_after_frame(GLuint texture);
/// Call after each frame and before the app's window is closed.
void delete_textures_of_drawn_frame();

}  // namespace kvscope::gui
