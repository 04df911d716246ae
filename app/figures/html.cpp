#include "analysis/tables/html.h"

#include <fmt/format.h>

#include <string_view>

#include "analysis/tables/table_format.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {
namespace {

/// Encodes a file in a URL. As an <img>, an SVG keeps its own name space: the glyphs of two inline SVGs would have the
/// same ids.
std::string data_url(std::string_view svg) {
    std::string url = "data:image/svg+xml,";
    for (const char c : svg) {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_plain =
            byte > 0x20 && byte < 0x7f && std::string_view("\"#%<>&'`").find(c) == std::string_view::npos;
        if (is_plain)
            url += c;
        else
            url += fmt::format("%{:02X}", byte);
    }
    return url;
}

}  // namespace

std::string render_html(const Exported& what, const ExportOptions& options) {
    using analysis::html_text;
    const analysis::Table numbers = what.numbers();
    std::string title = numbers.title, body;
    if (what.figure) {
        const analysis::Figure figure = what.figure();
        title = figure.title;
        body = fmt::format("<h1>{}</h1>\n", html_text(title));
        for (const analysis::Figure& page : analysis::split_into_pages(figure))
            body += fmt::format("<p><img src=\"{}\" alt=\"{}\"></p>\n", data_url(render_svg(page, options)),
                                html_text(figure.caption));
        body += fmt::format("<p>{}</p>\n", html_text(figure.caption));
    }
    body += analysis::format_table(numbers, analysis::TableFormat::html);
    return analysis::html_page(title, body);
}

}  // namespace kvscope::figures
