// Figures for tests, and access to the pixels of a PNG by its layout.
#pragma once

#include <cairo.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "analysis/drawing/figure.h"
#include "app/figures/figure_format.h"
#include "app/figures/layout.h"

namespace kvscope::figures::test {

/// Returns a figure with one map, colored from 1 to `largest`; lower values have the background color.
[[nodiscard]] inline analysis::Figure map_figure(size_t rows, size_t columns, double largest) {
    analysis::Figure figure;
    figure.name = "map";
    figure.title = "A map";
    figure.caption = "What is shown.";
    figure.recipe = {{"Model", "tiny <1 & 2>"}, {"Run", "snapkv"}};
    figure.width_mm = 120;
    figure.panel_height_mm = 30;
    analysis::ColorScale scale;
    scale.title = "Heads";
    scale.map = analysis::ColorMap::viridis_reversed;
    scale.min = 1;
    scale.max = largest;
    scale.whole_numbers = true;
    scale.background_label = "none";
    figure.color_scales.push_back(scale);
    analysis::Panel panel;
    panel.title = "snapkv 128";
    panel.note = "coverage 3 %";
    panel.x.title = "Token position";
    panel.x.min = -0.5;
    panel.x.max = static_cast<double>(columns) - 0.5;
    panel.x.whole_numbers = true;
    panel.y.title = "Layer";
    panel.y.min = -0.5;
    panel.y.max = static_cast<double>(rows) - 0.5;
    panel.y.whole_numbers = true;
    panel.y.reversed = true;
    analysis::HeatMap map;
    map.rows = rows;
    map.columns = columns;
    map.values.assign(rows * columns, 0.0F);
    map.x_begin = map.y_begin = -0.5;
    map.x_end = panel.x.max;
    map.y_end = panel.y.max;
    panel.shapes.emplace_back(std::move(map));
    figure.panels.push_back(std::move(panel));
    return figure;
}

[[nodiscard]] inline analysis::HeatMap& map_of(analysis::Figure& figure) {
    return std::get<analysis::HeatMap>(figure.panels[0].shapes[0]);
}

/// A rendered PNG and its layout.
class Picture {
 public:
    explicit Picture(const analysis::Figure& figure, double dpi = 300)
        : layout_(lay_out(figure)), per_point_(dpi / 72) {
        ExportOptions options;
        options.dpi = dpi;
        bytes_ = render_png(figure, options);
        Source source{&bytes_, 0};
        surface_.reset(cairo_image_surface_create_from_png_stream(read, &source));
        REQUIRE(cairo_surface_status(surface_.get()) == CAIRO_STATUS_SUCCESS);
    }

    [[nodiscard]] const std::string& bytes() const { return bytes_; }
    [[nodiscard]] const FigureLayout& layout() const { return layout_; }
    [[nodiscard]] int width() const { return cairo_image_surface_get_width(surface_.get()); }
    [[nodiscard]] int height() const { return cairo_image_surface_get_height(surface_.get()); }

    [[nodiscard]] analysis::Rgb pixel(int x, int y) const {
        REQUIRE(x >= 0);
        REQUIRE(y >= 0);
        REQUIRE(x < width());
        REQUIRE(y < height());
        uint32_t packed = 0;
        std::memcpy(
            &packed,
            cairo_image_surface_get_data(surface_.get()) + y * cairo_image_surface_get_stride(surface_.get()) + 4 * x,
            sizeof packed);
        return {static_cast<uint8_t>(packed >> 16), static_cast<uint8_t>(packed >> 8), static_cast<uint8_t>(packed)};
    }

    /// Returns the color at a relative position in a box of the layout; (0, 0) is its upper left corner.
    [[nodiscard]] analysis::Rgb at(const Box& box, double x_share, double y_share) const {
        return pixel(static_cast<int>((box.x + x_share * box.width) * per_point_),
                     static_cast<int>((box.y + y_share * box.height) * per_point_));
    }
    [[nodiscard]] analysis::Rgb in_panel(double x_share, double y_share, size_t panel = 0) const {
        return at(layout_.panels[panel].data, x_share, y_share);
    }

    /// Returns the number of pixels with a color inside a box, without its edges.
    [[nodiscard]] int count(const Box& box, analysis::Rgb color) const {
        int n = 0;
        for (int y = static_cast<int>(box.y * per_point_) + 2; y < static_cast<int>(box.bottom() * per_point_) - 2;
             ++y) {
            for (int x = static_cast<int>(box.x * per_point_) + 2; x < static_cast<int>(box.right() * per_point_) - 2;
                 ++x) {
                n += pixel(x, y) == color ? 1 : 0;
            }
        }
        return n;
    }

 private:
    struct Destroy {
        void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
    };
    struct Source {
        const std::string* bytes;
        size_t done;
    };
    [[nodiscard]] static cairo_status_t read(void* closure, unsigned char* data, unsigned int length) {
        auto* source = static_cast<Source*>(closure);
        if (source->done + length > source->bytes->size()) return CAIRO_STATUS_READ_ERROR;
        std::memcpy(data, source->bytes->data() + source->done, length);
        source->done += length;
        return CAIRO_STATUS_SUCCESS;
    }

    FigureLayout layout_;
    double per_point_;
    std::string bytes_;
    std::unique_ptr<cairo_surface_t, Destroy> surface_;
};

}  // namespace kvscope::figures::test
