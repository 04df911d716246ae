#pragma once

/// Contents of the files in shaders/, with '_' for '.' in the names.
namespace kvscope::gui::shaders {

extern const char* const heat_map_vert;
extern const char* const heat_map_frag;

}  // namespace kvscope::gui::shaders
