#include "app/figures/draw_raster.h"

#include <cmath>
#include <cstring>

#include "app/figures/pen.h"

namespace kvscope::figures {
namespace {

/// Draws cells as rectangles that overlap slightly, because viewers would show seams between them.
void draw_rectangles(const Canvas& canvas, const Box& box, const Raster& raster) {
    constexpr double overlap_pt = 0.15;
    const double width = box.width / static_cast<double>(raster.width);
    const double height = box.height / static_cast<double>(raster.height);
    for (size_t y = 0; y < raster.height; ++y) {
        for (size_t x = 0; x < raster.width; ++x) {
            set_color(canvas.cr, raster.pixels[y * raster.width + x]);
            cairo_rectangle(canvas.cr, box.x + width * static_cast<double>(x), box.y + height * static_cast<double>(y),
                            width + (x + 1 < raster.width ? overlap_pt : 0),
                            height + (y + 1 < raster.height ? overlap_pt : 0));
            cairo_fill(canvas.cr);
        }
    }
}

size_t device_pixels(double points, double dpi) { return static_cast<size_t>(std::llround(points / 72 * dpi)); }

}  // namespace

void draw_raster(const Canvas& canvas, const Box& box, const Window& columns, const Window& rows,
                 const std::function<Raster(size_t width, size_t height)>& make) {
    const bool whole = columns.whole_cells > 0 && rows.whole_cells > 0;
    if (!canvas.bitmap && whole && columns.whole_cells * rows.whole_cells <= canvas.most_rectangles) {
        draw_rectangles(canvas, box, make(columns.whole_cells, rows.whole_cells));
        return;
    }
    const size_t width = raster_side(columns, device_pixels(box.width, canvas.dpi), canvas.bitmap);
    const size_t height = raster_side(rows, device_pixels(box.height, canvas.dpi), canvas.bitmap);
    draw_image(canvas, box, make(width, height));
}

void draw_image(const Canvas& canvas, const Box& given, const Raster& raster) {
    // In vector files, extend the image under the frame: some viewers omit its last pixels.
    const double under = canvas.bitmap ? 0 : 0.2;
    const Box box{given.x - under, given.y - under, given.width + 2 * under, given.height + 2 * under};
    cairo_surface_t* image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(raster.width), static_cast<int>(raster.height));
    if (cairo_surface_status(image) == CAIRO_STATUS_SUCCESS) {
        cairo_surface_flush(image);
        unsigned char* bytes = cairo_image_surface_get_data(image);
        const auto stride = static_cast<size_t>(cairo_image_surface_get_stride(image));
        for (size_t y = 0; y < raster.height; ++y) {
            for (size_t x = 0; x < raster.width; ++x) {
                const analysis::Rgb c = raster.pixels[y * raster.width + x];
                const uint32_t packed = (uint32_t{c.r} << 16) | (uint32_t{c.g} << 8) | c.b;
                std::memcpy(bytes + y * stride + x * sizeof packed, &packed, sizeof packed);
            }
        }
        cairo_surface_mark_dirty(image);
    }
    cairo_save(canvas.cr);
    cairo_translate(canvas.cr, box.x, box.y);
    cairo_scale(canvas.cr, box.width / static_cast<double>(raster.width),
                box.height / static_cast<double>(raster.height));
    cairo_set_source_surface(canvas.cr, image, 0, 0);  // also passes errors of the image to the context
    cairo_pattern_set_filter(cairo_get_source(canvas.cr), CAIRO_FILTER_NEAREST);
    cairo_paint(canvas.cr);  // with a fill, Cairo would write an SVG pattern, which viewers smooth
    cairo_restore(canvas.cr);
    cairo_surface_destroy(image);
}

}  // namespace kvscope::figures
