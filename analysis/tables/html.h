#pragma once

#include <string>
#include <string_view>

#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Returns the text with &, < and > replaced, for the content of an element of HTML or XML.
[[nodiscard]] std::string markup_text(std::string_view text);

/// Returns the text on one line, with characters that have a meaning in HTML, also in attributes, and control
/// characters, replaced.
[[nodiscard]] std::string html_text(std::string_view text);

/// Returns a complete page without references to other files or servers. @param body HTML
[[nodiscard]] std::string html_page(std::string_view title, std::string_view body);

}  // namespace kvscope::analysis
