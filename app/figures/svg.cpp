#include <cairo-svg.h>
#include <fmt/format.h>

#include <map>
#include <string_view>

#include "analysis/tables/html.h"
#include "app/figures/cairo_surface.h"
#include "app/figures/figure_format.h"
#include "app/figures/figure_text.h"
#include "app/figures/layout.h"
#include "common/replace_all.h"

namespace kvscope::figures {
namespace {

std::string escaped(std::string text) {
    // XML forbids control characters.
    std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; });
    return analysis::markup_text(text);
}

/// Renumbers Cairo's images and surfaces from 0, so that equal figures give equal files.
void renumber(std::string& svg, std::string_view mark, std::string_view kind, std::map<std::string, size_t>& numbers) {
    const std::string begin = std::string(mark) + std::string(kind);
    std::string out;
    size_t done = 0;
    for (size_t at = svg.find(begin); at != std::string::npos; at = svg.find(begin, done)) {
        const size_t digits = at + begin.size();
        const size_t end = svg.find_first_not_of("0123456789", digits);
        if (end == std::string::npos) break;
        const std::string number = svg.substr(digits, end - digits);
        out.append(svg, done, digits - done);
        out += number.empty() ? number : std::to_string(numbers.emplace(number, numbers.size()).first->second);
        done = end;
    }
    out.append(svg, done, std::string::npos);
    svg = std::move(out);
}

/// Adds title and description, and the style that keeps enlarged maps sharp.
std::string completed(std::string svg, const analysis::Figure& figure, const ExportOptions& options) {
    for (const std::string_view kind : {"image", "surface"}) {
        std::map<std::string, size_t> numbers;
        renumber(svg, "id=\"", kind, numbers);
        renumber(svg, "href=\"#", kind, numbers);
    }
    if (svg.find("image-rendering") == std::string::npos)
        replace_all(svg, "<image ", "<image style=\"image-rendering:crisp-edges;image-rendering:pixelated\" ");
    const size_t root = svg.find("<svg ");
    const size_t root_end = root == std::string::npos ? root : svg.find('>', root);
    if (root_end == std::string::npos)
        throw std::runtime_error("figure: writing the SVG failed: Cairo's output has no <svg>");
    svg.insert(root_end + 1,
               fmt::format("\n<title>{}</title>\n<desc>{}\nCreator: {}</desc>", escaped(valid_text(figure.title)),
                           escaped(recipe_text(figure, "\n")), escaped(options.creator)));
    return svg;
}

}  // namespace

std::string render_svg(const analysis::Figure& figure, const ExportOptions& options) {
    check_dpi(options.dpi);
    const FigureLayout layout = lay_out(figure);
    std::string bytes;
    const Surface surface(cairo_svg_surface_create_for_stream(append_bytes, &bytes, layout.width, layout.height));
    check_cairo(cairo_surface_status(surface.get()), "creating the SVG");
    draw_on(surface.get(), figure, layout, options, false, 1);
    cairo_surface_finish(surface.get());
    check_cairo(cairo_surface_status(surface.get()), "writing the SVG");
    return completed(std::move(bytes), figure, options);
}

}  // namespace kvscope::figures
