#include "app/cli/figures_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/tables/column_layout.h"

namespace kvscope::cli {
namespace {

constexpr size_t least_flag_columns = 10;

/// Breaks a text into lines that begin at column `indent`. `lead` precedes the first line.
std::string wrapped(const std::string& text, const std::string& lead, size_t indent, size_t columns) {
    std::string out;
    for (const auto& line : analysis::break_into_lines(text, columns - indent))
        out += fmt::format("{:<{}}{}\n", out.empty() ? lead : "", indent, line);
    return out;
}

}  // namespace

std::string format_help_entry(const std::string& name, const std::string& summary,
                              const std::vector<analysis::FigureOption>& options, size_t columns) {
    std::string text = name + '\n' + wrapped(summary, "", 4, columns);
    size_t flag_columns = least_flag_columns;
    for (const auto& option : options) flag_columns = std::max(flag_columns, analysis::option_flag(option).size() + 2);
    for (const auto& option : options) {
        std::string help = option.help;
        if (!option.choices.empty()) help += fmt::format(" ({})", fmt::join(option.choices, ", "));
        text += wrapped(help, "    " + analysis::option_flag(option), 4 + flag_columns, columns);
    }
    return text;
}

std::string figures_text(size_t columns) {
    std::string text;
    for (const auto& definition : analysis::figure_definitions())
        text += (text.empty() ? "" : "\n") +
                format_help_entry(definition.name, definition.summary, definition.options, columns);
    return text;
}

}  // namespace kvscope::cli
