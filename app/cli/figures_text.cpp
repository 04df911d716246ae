#include "app/cli/figures_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/figure_definition.h"

namespace kvscope::cli {
namespace {

constexpr size_t kFlagColumns = 10;

/// Breaks between words; every line begins at column `indent`, the first behind `lead`.
std::string wrapped(std::string_view text, const std::string& lead, size_t indent, size_t columns) {
    std::string out = fmt::format("{:<{}}", lead, indent);
    size_t column = indent;
    bool is_first = true;
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const auto is_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
        const auto width = static_cast<size_t>(std::count_if(word.begin(), word.end(), is_character));
        if (!is_first && column + 1 + width > columns) {
            out += '\n' + std::string(indent, ' ');
            column = indent;
            is_first = true;
        }
        if (!is_first) out += ' ';
        out += word;
        column += width + (is_first ? 0 : 1);
        is_first = false;
    }
    return out + '\n';
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
