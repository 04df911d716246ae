#pragma once

#include <imgui.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/figure/figure_job.h"

namespace kvscope::gui {

struct FigurePicture {
    int width = 0;
    int height = 0;
    std::vector<uint32_t> pixels;  ///< 0x00RRGGBB, row 0 at the top; empty if there is no figure
    double width_mm = 0;
    double height_mm = 0;
    std::string title;
    std::string caption;
    std::string nothing;  ///< reason why there is no figure
    size_t page = 0;      ///< index of the shown page
    size_t n_pages = 1;
};

/// Draws a page as large as fits, at 300 dpi or less, on any thread. Throws like the definition, except NothingToShow.
[[nodiscard]] FigurePicture render_preview_page(const FigureJob& job, int room_width, int room_height, size_t page = 0);

/// A picture on the GPU, for the main thread only.
class PictureTexture {
 public:
    PictureTexture() = default;
    ~PictureTexture();
    PictureTexture(const PictureTexture&) = delete;
    PictureTexture& operator=(const PictureTexture&) = delete;

    [[nodiscard]] ImTextureRef get(const std::shared_ptr<const FigurePicture>& picture);

 private:
    std::shared_ptr<const FigurePicture> source_;
    unsigned texture_ = 0;
};

}  // namespace kvscope::gui
