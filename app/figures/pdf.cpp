#include <cairo-pdf.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "app/figures/cairo_surface.h"
#include "app/figures/figure_format.h"
#include "app/figures/figure_text.h"
#include "app/figures/layout.h"

namespace kvscope::figures {
namespace {

/// Returns the trace's date in ISO 8601, or an empty text. The present time would make each file differ.
std::string document_date(const analysis::Figure& figure) {
    const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
    if (epoch == nullptr) return figure.created_utc;
    std::time_t seconds = 0;
    const auto [end, error] = std::from_chars(epoch, epoch + std::strlen(epoch), seconds);
    std::tm utc{};
    if (error != std::errc() || *end != '\0' || gmtime_r(&seconds, &utc) == nullptr) {
        throw FormatError(fmt::format("SOURCE_DATE_EPOCH: expected seconds since 1970, found '{}'", epoch));
    }
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

std::string render_pdf(const analysis::Figure& figure, const ExportOptions& options) {
    check_dpi(options.dpi);
    const std::vector<analysis::Figure> pages = analysis::split_into_pages(figure);
    std::vector<FigureLayout> layouts;
    for (const analysis::Figure& page : pages) layouts.push_back(lay_out(page));
    const std::string date = document_date(figure);
    std::string bytes;
    const Surface surface(
        cairo_pdf_surface_create_for_stream(append_bytes, &bytes, layouts[0].width, layouts[0].height));
    check_cairo(cairo_surface_status(surface.get()), "creating the PDF");
    cairo_pdf_surface_restrict_to_version(surface.get(), CAIRO_PDF_VERSION_1_5);
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, valid_text(figure.title).c_str());
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_SUBJECT, valid_text(figure.caption).c_str());
    analysis::Figure recipe_alone;
    recipe_alone.recipe = figure.recipe;
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_KEYWORDS, recipe_text(recipe_alone, "; ").c_str());
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATOR, options.creator.c_str());
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE,
                                   date.empty() ? nullptr : date.c_str());
    cairo_surface_set_fallback_resolution(surface.get(), options.dpi, options.dpi);
    for (size_t i = 0; i < pages.size(); ++i) {
        if (i > 0) {
            cairo_surface_show_page(surface.get());
            cairo_pdf_surface_set_size(surface.get(), layouts[i].width, layouts[i].height);
        }
        draw_on(surface.get(), pages[i], layouts[i], options, false, 1);
    }
    cairo_surface_finish(surface.get());
    check_cairo(cairo_surface_status(surface.get()), "writing the PDF");
    return bytes;
}

}  // namespace kvscope::figures
