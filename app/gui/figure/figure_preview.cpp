#include "app/gui/figure/figure_preview.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "app/figures/cairo_surface.h"
#include "app/figures/layout.h"
#include "app/gui/drawing/texture.h"

namespace kvscope::gui {
namespace {

constexpr double most_dpi = 300;
constexpr double least_dpi = 10;

}  // namespace

FigurePicture render_preview_page(const FigureJob& job, int room_width, int room_height, size_t page) {
    FigurePicture picture;
    try {
        const std::vector<analysis::Figure> pages = analysis::split_into_pages(job.figure());
        picture.n_pages = pages.size();
        picture.page = std::min(page, pages.size() - 1);
        const analysis::Figure& figure = pages[picture.page];
        const figures::FigureLayout layout = figures::lay_out(figure);
        const double per_point =
            std::clamp(std::min(room_width / layout.width, room_height / layout.height), least_dpi / 72, most_dpi / 72);
        picture.title = figure.title;
        picture.caption = figure.caption;
        picture.width_mm = layout.width / figures::points_per_mm;
        picture.height_mm = layout.height / figures::points_per_mm;
        picture.width = static_cast<int>(std::ceil(layout.width * per_point - 1e-6));
        picture.height = static_cast<int>(std::ceil(layout.height * per_point - 1e-6));
        const figures::Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, picture.width, picture.height));
        figures::ExportOptions drawing;
        drawing.dpi = 72 * per_point;
        figures::draw_on(surface.get(), figure, layout, drawing, true, per_point);
        cairo_surface_flush(surface.get());
        const auto width = static_cast<size_t>(picture.width);
        const auto height = static_cast<size_t>(picture.height);
        const auto stride = static_cast<size_t>(cairo_image_surface_get_stride(surface.get()));
        const unsigned char* data = cairo_image_surface_get_data(surface.get());
        picture.pixels.resize(width * height);
        for (size_t row = 0; row < height; ++row)
            std::memcpy(picture.pixels.data() + row * width, data + row * stride, 4 * width);
    } catch (const analysis::NothingToShow& nothing) {
        picture.nothing = nothing.what();
    } catch (const figures::LayoutError& error) {
        picture.nothing = error.what();
    }
    return picture;
}

PictureTexture::~PictureTexture() { delete_after_frame(texture_); }

ImTextureRef PictureTexture::get(const std::shared_ptr<const FigurePicture>& picture) {
    if (source_ != picture) {
        source_ = picture;
        fill_texture(texture_, GL_LINEAR, GL_RGB8, picture->width, picture->height, GL_BGRA,
                     GL_UNSIGNED_INT_8_8_8_8_REV, picture->pixels.data(), 4);
    }
    return ImTextureRef(static_cast<ImTextureID>(texture_));
}

}  // namespace kvscope::gui
