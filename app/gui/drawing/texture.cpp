#include "app/gui/drawing/texture.h"

#include <vector>

namespace kvscope::gui {
namespace {

std::vector<GLuint>& textures_to_delete() {
    static std::vector<GLuint> textures;
    return textures;
}

}  // namespace

void fill_texture(GLuint& texture, GLint filter, GLint format, int width, int height, GLenum layout, GLenum type,
                  const void* pixels, int alignment) {
    if (!texture) glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, filter);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, filter);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    glPixelStorei(GL_UNPACK_ALIGNMENT, alignment);
    glTexImage2D(GL_TEXTURE_2D, 0, format, width, height, 0, layout, type, pixels);
}

void delete_after_frame(GLuint texture) {
    if (texture) textures_to_delete().push_back(texture);
}

void delete_textures_of_drawn_frame() {
    auto& textures = textures_to_delete();
    glDeleteTextures(static_cast<GLsizei>(textures.size()), textures.data());
    textures.clear();
}

}  // namespace kvscope::gui
