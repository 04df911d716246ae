#include "app/cli/figures_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/tables/column_layout.h"
#include "app/cli/terminal.h"

namespace kvscope::cli {
namespace {

constexpr size_t least_flag_columns = 10;

}  // namespace

std::string wrapped(const std::string& text, const std::string& lead, size_t indent, size_t columns) {
    std::string out;
    for (const auto& line : analysis::break_into_lines(text, columns - indent))
        out += fmt::format("{:<{}}{}\n", out.empty() ? lead : "", indent, line);
    return out;
}

namespace {

std::string help_entry(const analysis::FigureDefinition& definition, size_t columns) {
    std::string text = definition.name + '\n' + wrapped(definition.summary, "", 4, columns);
    size_t flag_columns = least_flag_columns;
    for (const auto& option : definition.options)
        flag_columns = std::max(flag_columns, analysis::option_flag(option).size() + 2);
    for (const auto& option : definition.options) {
        std::string help = option.help;
        if (!option.choices.empty()) help += fmt::format(" ({})", fmt::join(option.choices, ", "));
        text += wrapped(help, "    " + analysis::option_flag(option), 4 + flag_columns, columns);
    }
    return text;
}

}  // namespace

std::string definitions_text(std::span<const analysis::FigureDefinition> definitions, size_t columns) {
    std::string text;
    for (const auto& definition : definitions) text += (text.empty() ? "" : "\n") + help_entry(definition, columns);
    return text;
}

size_t list_columns() {
    const size_t columns = terminal_width();
    return columns == 0 ? 100 : std::min<size_t>(columns, 100);
}

std::string list_text(std::span<const analysis::FigureDefinition> definitions) {
    return definitions_text(definitions, list_columns());
}

}  // namespace kvscope::cli
