#include "analysis/tables/html.h"

#include <fmt/format.h>

#include "analysis/tables/terminal_text.h"

namespace kvscope::analysis {

std::string markup_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string html_text(std::string_view text) {
    std::string out;
    for (const char c : markup_text(terminal_text(text, Lines::one))) {
        if (c == '"')
            out += "&quot;";
        else
            out += c;
    }
    return out;
}

std::string html_page(std::string_view title, std::string_view body) {
    constexpr std::string_view style =
        "body { font-family: sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }\n"
        "img { max-width: 100%; background: white; }\n"
        "table { border-collapse: collapse; border-top: 2px solid; border-bottom: 2px solid; margin: 1em 0; }\n"
        "caption { text-align: left; font-weight: bold; }\n"
        "th { border-bottom: 1px solid; text-align: left; }\n"
        "th, td { padding: 0.2em 0.8em; }\n"
        ".number { text-align: right; font-variant-numeric: tabular-nums; }\n"
        ".second { text-decoration: underline; }\n";
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
        "charset=\"utf-8\">\n<title>{}</title>\n<style>\n{}</style>\n"
        "</head>\n<body>\n{}</body>\n</html>\n",
        html_text(title), style, body);
}

}  // namespace kvscope::analysis
