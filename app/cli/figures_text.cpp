#include "app/cli/figures_text.h"

#include <fmt/format.h>

#include "analysis/figure_definition.h"
#include "analysis/tables/column_layout.h"

namespace kvscope::cli {
namespace {

constexpr size_t kFlagColumns = 10;

/// Lines that begin at column `indent`, the first behind `lead`.
std::string wrapped(const std::string& text, const std::string& lead, size_t indent, size_t columns) {
    std::string out;
    for (const auto& line : analysis::broken_lines(text, columns - indent))
        out += fmt::format("{:<{}}{}\n", out.empty() ? lead : "", indent, line);
    return out;
}

}  // namespace

std::string figures_text(size_t columns) {
    std::string text;
    for (const auto& definition : analysis::figure_definitions()) {
        text += (text.empty() ? "" : "\n") + definition.name + '\n';
        text += wrapped(definition.summary, "", 4, columns);
        for (const auto& option : definition.options) {
            std::string help = option.help;
            if (!option.choices.empty()) help += fmt::format(" ({})", fmt::join(option.choices, ", "));
            text += wrapped(help, "    " + analysis::option_flag(option), 4 + kFlagColumns, columns);
        }
    }
    return text;
}

}  // namespace kvscope::cli
