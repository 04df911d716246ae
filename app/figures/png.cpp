#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "app/figures/cairo_surface.h"
#include "app/figures/figure_format.h"
#include "app/figures/figure_text.h"
#include "app/figures/layout.h"

namespace kvscope::figures {
namespace {

constexpr size_t header_bytes = 8 + 25;  // signature and IHDR, the first chunk
constexpr int largest_side = 32767;      // Cairo's limit

constexpr std::array<uint32_t, 256> crc_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t n = 0; n < 256; ++n) {
        uint32_t c = n;
        for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
        table[n] = c;
    }
    return table;
}

uint32_t crc32(const std::string& bytes) {
    static constexpr std::array<uint32_t, 256> table = crc_table();
    uint32_t crc = 0xFFFFFFFFU;
    for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (crc >> 8);
    return crc ^ 0xFFFFFFFFU;
}

std::string big_endian(uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
            static_cast<char>(value)};
}

std::string chunk(const std::string& type, const std::string& data) {
    return big_endian(static_cast<uint32_t>(data.size())) + type + data + big_endian(crc32(type + data));
}

std::string text_chunk(const std::string& keyword, const std::string& text) {
    for (const char c : text)
        if (static_cast<unsigned char>(c) >= 0x80) return chunk("iTXt", keyword + std::string(5, '\0') + text);
    return chunk("tEXt", keyword + '\0' + text);
}

std::string resolution_chunk(double dpi) {
    const std::string per_metre = big_endian(static_cast<uint32_t>(std::lround(dpi / 0.0254)));
    return chunk("pHYs", per_metre + per_metre + '\1');
}

}  // namespace

std::string render_png(const analysis::Figure& figure, const ExportOptions& options) {
    check_dpi(options.dpi);
    const FigureLayout layout = lay_out(figure);
    const double per_point = options.dpi / 72;
    const double width = std::ceil(layout.width * per_point - 1e-6);
    const double height = std::ceil(layout.height * per_point - 1e-6);
    if (width > largest_side || height > largest_side) {
        throw FormatError(fmt::format(
            "a PNG of {} x {} pixels is too large: at most {} pixels per side; lower the resolution ({} dots "
            "per inch) or the size",
            width, height, largest_side, options.dpi));
    }
    const Surface surface(
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width), static_cast<int>(height)));
    draw_on(surface.get(), figure, layout, options, true, per_point);
    cairo_surface_flush(surface.get());
    std::string bytes;
    check_cairo(cairo_surface_write_to_png_stream(surface.get(), append_bytes, &bytes), "writing the PNG");
    std::string extra = resolution_chunk(options.dpi) + text_chunk("Title", valid_text(figure.title)) +
                        text_chunk("Software", options.creator) + text_chunk("Description", recipe_text(figure, "\n"));
    if (!figure.created_utc.empty()) extra += text_chunk("Creation Time", figure.created_utc);
    bytes.insert(header_bytes, extra);
    return bytes;
}

}  // namespace kvscope::figures
