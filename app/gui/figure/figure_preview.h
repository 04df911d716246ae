#pragma once

#include <imgui.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/figure/figure_source.h"

namespace kvscope::gui {

/// A figure's pixels as it is exported, drawn by the same code.
struct FigurePicture {
    int width = 0;
    int height = 0;
    std::vector<uint32_t> pixels;  ///< 0x00RRGGBB, row 0 at the top; empty where there is nothing to show
    double width_mm = 0;
    double height_mm = 0;
    std::string title;
    std::string caption;
    std::string nothing;  ///< why there is no picture
    size_t page = 0;      ///< which is shown
    size_t n_pages = 1;
};

/// At the resolution at which it fits into the room, at most that of a 300-dpi print. On a worker thread.
/// @param page the last one where there are fewer
/// @throws what the definition throws, except NothingToShow and LayoutError, which become `nothing`
FigurePicture draw_picture(const FigureJob& job, int room_width, int room_height, size_t page = 0);

/// A picture on the GPU. Made, used and destroyed on the window's thread.
class PictureTexture {
 public:
    PictureTexture() = default;
    ~PictureTexture();
    PictureTexture(const PictureTexture&) = delete;
    PictureTexture& operator=(const PictureTexture&) = delete;

    /// Uploaded when it is another picture than last time.
    ImTextureRef get(const std::shared_ptr<const FigurePicture>& picture);

 private:
    std::shared_ptr<const FigurePicture> source_;
    unsigned texture_ = 0;
};

}  // namespace kvscope::gui
