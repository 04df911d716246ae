#pragma once

/// Texts of the files in shaders/. A '.' in the file name is '_' here.
namespace kvscope::gui::shaders {

extern const char* const heat_map_vert;
extern const char* const heat_map_frag;

}  // namespace kvscope::gui::shaders
