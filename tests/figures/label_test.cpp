#include <cairo.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "app/figures/figure_text.h"

using namespace kvscope::figures;
using namespace kvscope::analysis;

namespace {

constexpr int width = 240, height = 60;

/// Draws a label on white, enlarged.
std::vector<uint32_t> drawn(const TextLabel& label, double squeezed_into = 0) {
    std::vector<uint32_t> pixels(width * height);
    const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface(
        cairo_image_surface_create_for_data(reinterpret_cast<unsigned char*>(pixels.data()), CAIRO_FORMAT_RGB24, width,
                                            height, width * 4),
        cairo_surface_destroy);
    const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> cr(cairo_create(surface.get()), cairo_destroy);
    cairo_set_source_rgb(cr.get(), 1, 1, 1);
    cairo_paint(cr.get());
    draw_label(cr.get(), label, 28, width / 2.0, height / 2.0, squeezed_into);
    cairo_surface_flush(surface.get());
    return pixels;
}

TextLabel label_of(const std::string& text, std::vector<TextLabel::Ink> inks = {}) {
    TextLabel label;
    label.text = text;
    label.monospace = true;
    label.inks = std::move(inks);
    return label;
}

/// Returns the first and the last column with ink.
std::pair<int, int> reach(const std::vector<uint32_t>& pixels) {
    int first = width, last = -1;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            if ((pixels[static_cast<size_t>(y * width + x)] & 0xffffff) != 0xffffff) {
                first = std::min(first, x);
                last = std::max(last, x);
            }
    return {first, last};
}

/// Returns how much redder than blue a part of the picture is.
int64_t redness(const std::vector<uint32_t>& pixels, int from, int to) {
    int64_t sum = 0;
    for (int y = 0; y < height; ++y)
        for (int x = from; x < to; ++x) {
            const uint32_t pixel = pixels[static_cast<size_t>(y * width + x)];
            sum += static_cast<int64_t>((pixel >> 16) & 0xff) - static_cast<int64_t>(pixel & 0xff);
        }
    return sum;
}

/// Returns the difference of two black-and-white pictures, relative to the first one's ink.
double difference(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    double ink = 0, differs = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        ink += 255 - (a[i] & 0xff);
        differs += std::abs(static_cast<double>(a[i] & 0xff) - static_cast<double>(b[i] & 0xff));
    }
    return differs / ink;
}

constexpr Rgb red{255, 0, 0}, blue{0, 0, 255}, black{0, 0, 0};

}  // namespace

TEST_CASE("label: letters in several colors join as in one color") {
    const std::string word = "مرحبا";
    const auto whole = drawn(label_of(word));
    CHECK(difference(whole, drawn(label_of(word, {{4, black}, {6, black}, {10, black}}))) < 0.02);
    CHECK(difference(whole, drawn(label_of("مر\u200cح\u200cبا"))) > 0.2);  // with the same letters separated
}

TEST_CASE("label: each part has its color, the first Arabic letter at the right") {
    const auto arabic = drawn(label_of("مرحبا", {{4, red}, {10, blue}}));
    const auto [first, last] = reach(arabic);
    REQUIRE(first < last);
    CHECK(redness(arabic, first, first + (last - first) / 3) < 0);
    CHECK(redness(arabic, last - (last - first) / 3, last + 1) > 0);
    const auto latin = drawn(label_of("axle", {{2, red}, {4, blue}}));
    const auto [left, right] = reach(latin);
    CHECK(redness(latin, left, (left + right) / 2) > 0);
    CHECK(redness(latin, (left + right) / 2 + 1, right) < 0);
}

TEST_CASE("label: a bracket in right-to-left text is mirrored") {
    TextLabel bracket = label_of("(");
    const auto as_written = drawn(bracket);
    bracket.is_right_to_left = true;
    CHECK((drawn(bracket) == drawn(label_of(")"))));
    CHECK((drawn(bracket) != as_written));
}

TEST_CASE("label: a wide label is compressed, a narrow one is not stretched") {
    const auto [first, last] = reach(drawn(label_of("wide word")));
    const auto [squeezed_first, squeezed_last] = reach(drawn(label_of("wide word"), 80));
    CHECK(last - first > 100);
    CHECK(squeezed_last - squeezed_first < 80);
    CHECK(squeezed_first > first);
    CHECK((drawn(label_of("w"), 200) == drawn(label_of("w"))));
}

TEST_CASE("label: invalid UTF-8 is drawn as U+FFFD in the color of its part") {
    CHECK((drawn(label_of("a\xFFz", {{2, black}, {3, black}})) == drawn(label_of("a\uFFFDz"))));
    CHECK((drawn(label_of("")) == std::vector<uint32_t>(width * height, drawn(label_of("")).front())));
}
