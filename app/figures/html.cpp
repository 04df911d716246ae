#include "analysis/tables/html.h"

#include <fmt/format.h>

#include <string_view>

#include "analysis/tables/table_format.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

std::string data_url_of_svg(std::string_view svg) {
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

std::string html_of_pictures(const analysis::Figure& figure, const ExportOptions& options) {
    std::string html;
    for (const analysis::Figure& page : analysis::split_into_pages(figure))
        html += fmt::format("<p><img src=\"{}\" alt=\"{}\"></p>\n", data_url_of_svg(render_svg(page, options)),
                            analysis::html_text(figure.caption));
    return html + fmt::format("<p>{}</p>\n", analysis::html_text(figure.caption));
}

std::string render_html(const Exported& what, const ExportOptions& options) {
    const analysis::Table numbers = what.numbers();
    std::string title = numbers.title, body;
    if (what.figure) {
        const analysis::Figure figure = what.figure();
        title = figure.title;
        body = fmt::format("<h1>{}</h1>\n", analysis::html_text(title)) + html_of_pictures(figure, options);
    }
    body += analysis::format_table(numbers, analysis::TableFormat::html);
    return analysis::html_page(title, body);
}

}  // namespace kvscope::figures
