#include "analysis/tables/table_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

#include "analysis/tables/column_layout.h"
#include "analysis/tables/html.h"
#include "analysis/tables/terminal_text.h"
#include "common/bounded_json.h"
#include "common/json.h"
#include "common/utf8.h"

namespace kvscope::analysis {
namespace {

constexpr std::array<std::string_view, 6> format_names = {"text", "csv", "md", "tex", "json", "jsonl"};

/// Numbers that may share a mark. A mark of more numbers would not help to find the best ones.
constexpr std::ptrdiff_t most_alike = 2;

void check_shape(const Table& table) {
    for (size_t r = 0; r < table.rows.size(); ++r) {
        if (table.rows[r].cells.size() != table.columns.size()) {
            throw std::invalid_argument(fmt::format("table '{}': row {} has {} cells, but there are {} columns",
                                                    table.name, r, table.rows[r].cells.size(), table.columns.size()));
        }
    }
}

std::string shortest(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), end.ptr};
}

std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

std::string csv_cell(const Cell& cell) {
    if (const auto* text = std::get_if<SharedText>(&cell)) return text->empty() ? "\"\"" : csv_field(text->string());
    if (const auto* whole = std::get_if<int64_t>(&cell)) return std::to_string(*whole);
    if (const auto* real = std::get_if<double>(&cell)) return shortest(*real);
    if (const auto* mean = std::get_if<Shared<MeanCell>>(&cell)) return shortest((*mean)->mean);
    return {};
}

std::string csv(const Table& table) {
    std::string out;
    for (size_t c = 0; c < table.columns.size(); ++c) {
        if (c > 0) out += ',';
        out += csv_field(table.columns[c].name);
    }
    out += '\n';
    for (const Row& row : table.rows) {
        for (size_t c = 0; c < row.cells.size(); ++c) {
            if (c > 0) out += ',';
            out += csv_cell(row.cells[c]);
        }
        out += '\n';
    }
    return out;
}

nlohmann::ordered_json json_row(const Table& table, const Row& row) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (size_t c = 0; c < row.cells.size(); ++c) {
        nlohmann::ordered_json& value = object[table.columns[c].name];
        if (const auto* text = std::get_if<SharedText>(&row.cells[c])) {
            if (table.columns[c].is_json)
                value = bounded_json::parse_or_discard<nlohmann::ordered_json>(text->string());
            if (!table.columns[c].is_json || value.is_discarded()) value = text->string();
        }
        if (const auto* whole = std::get_if<int64_t>(&row.cells[c])) value = *whole;
        if (const auto* real = std::get_if<double>(&row.cells[c]); real != nullptr && std::isfinite(*real))
            value = *real;
        if (const auto* mean = std::get_if<Shared<MeanCell>>(&row.cells[c]);
            mean != nullptr && std::isfinite((*mean)->mean))
            value = (*mean)->mean;
    }
    return object;
}

std::string dump(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string json(const Table& table) {
    std::string out = "[";
    for (size_t r = 0; r < table.rows.size(); ++r) {
        out += r == 0 ? "\n  " : ",\n  ";
        out += dump(json_row(table, table.rows[r]));
    }
    return out + (table.rows.empty() ? "]\n" : "\n]\n");
}

std::string jsonl(const Table& table) {
    std::string out;
    for (const Row& row : table.rows) out += dump(json_row(table, row)) + '\n';
    return out;
}

std::string heading(const Column& column) {
    const std::string& title = column.title.empty() ? column.name : column.title;
    return column.unit.empty() ? title : fmt::format("{} ({})", title, column.unit);
}

bool is_number(const Column& column) { return column.type != ColumnType::text; }

std::string shown(const Cell& cell, const Column& column, bool group_thousands) {
    if (const auto* text = std::get_if<SharedText>(&cell)) return text->string();
    if (const auto* whole = std::get_if<int64_t>(&cell)) {
        return group_thousands ? format_count(*whole) : std::to_string(*whole);
    }
    if (const auto* real = std::get_if<double>(&cell)) return format_real(*real, column.decimals);
    if (const auto* mean = std::get_if<Shared<MeanCell>>(&cell)) return format_mean(**mean, column.decimals);
    return {};
}

std::optional<double> number(const Cell& cell) {
    if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&cell); real != nullptr && !std::isnan(*real)) return *real;
    if (const auto* mean = std::get_if<Shared<MeanCell>>(&cell); mean != nullptr && !std::isnan((*mean)->mean))
        return (*mean)->mean;
    return std::nullopt;
}

/// Returns the number as it is displayed, without its interval.
std::string displayed(const Cell& cell, const Column& column) {
    if (const auto* mean = std::get_if<Shared<MeanCell>>(&cell)) return format_real((*mean)->mean, column.decimals);
    return shown(cell, column, false);
}

std::string padded(const std::string& text, size_t width, bool right) {
    const size_t length = terminal_display_width(text);
    const std::string fill(width > length ? width - length : 0, ' ');
    return right ? fill + text : text + fill;
}

std::vector<size_t> widths(const TextCells& lines, size_t n_columns) {
    std::vector<size_t> width(n_columns, 0);
    for (const auto& line : lines) {
        for (size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], terminal_display_width(line[c]));
    }
    return width;
}

std::string text(const Table& table, size_t width) {
    TextCells lines(1);
    std::vector<bool> numbers;
    for (const Column& column : table.columns) {
        lines[0].push_back(terminal_text(heading(column), Lines::one));
        numbers.push_back(is_number(column));
    }
    for (const Row& row : table.rows) {
        auto& line = lines.emplace_back();
        for (size_t c = 0; c < row.cells.size(); ++c)
            line.push_back(terminal_text(shown(row.cells[c], table.columns[c], true), Lines::one));
    }
    std::string out = format_aligned_columns(lines, numbers, width);
    if (!table.note.empty()) out += terminal_text(table.note, Lines::one) + "\n";
    return out;
}

std::string markdown_escaped(std::string_view raw) {
    std::string out;
    for (const char c : raw) {
        if (c == '|' || c == '\\' || c == '*' || c == '`' || c == '<') out += '\\';
        out += c;
    }
    return terminal_text(out, Lines::one);
}

std::string markdown(const Table& table) {
    const auto ranks = ranks_of_cells(table);
    TextCells lines(1);
    for (const Column& column : table.columns) lines[0].push_back(markdown_escaped(heading(column)));
    for (size_t r = 0; r < table.rows.size(); ++r) {
        auto& line = lines.emplace_back();
        for (size_t c = 0; c < table.columns.size(); ++c) {
            const std::string cell = markdown_escaped(shown(table.rows[r].cells[c], table.columns[c], false));
            line.push_back(ranks[r][c] == Rank::best     ? "**" + cell + "**"
                           : ranks[r][c] == Rank::second ? "<u>" + cell + "</u>"
                                                         : cell);
        }
    }
    std::vector<size_t> width = widths(lines, table.columns.size());
    for (size_t& w : width) w = std::max<size_t>(w, 3);
    const auto row_of = [&](const std::vector<std::string>& line) {
        std::string row = "|";
        for (size_t c = 0; c < line.size(); ++c) row += padded(line[c], width[c], is_number(table.columns[c])) + '|';
        return row + '\n';
    };
    std::string out = row_of(lines[0]) + '|';
    for (size_t c = 0; c < table.columns.size(); ++c) {
        out += is_number(table.columns[c]) ? std::string(width[c] - 1, '-') + ":|" : std::string(width[c], '-') + '|';
    }
    out += '\n';
    for (size_t r = 1; r < lines.size(); ++r) out += row_of(lines[r]);
    if (!table.note.empty()) out += "\n" + markdown_escaped(table.note) + "\n";
    return out;
}

std::string_view in_latex(std::string_view character) {
    static const std::map<std::string_view, std::string_view> all = {
        {"&", "\\&"},
        {"%", "\\%"},
        {"$", "\\$"},
        {"#", "\\#"},
        {"_", "\\_"},
        {"{", "\\{"},
        {"}", "\\}"},
        {"\\", "\\textbackslash{}"},
        {"~", "\\textasciitilde{}"},
        {"^", "\\textasciicircum{}"},
        {"|", "\\textbar{}"},
        {"<", "\\textless{}"},
        {">", "\\textgreater{}"},
        {"−", "$-$"},
        {"±", "$\\pm$"},
        {"×", "$\\times$"},
        {"÷", "$\\div$"},
        {"·", "$\\cdot$"},
        {"‖", "$\\|$"},
        {"≤", "$\\le$"},
        {"≥", "$\\ge$"},
        {"≈", "$\\approx$"},
        {"→", "$\\rightarrow$"},
        {"←", "$\\leftarrow$"},
        {"↵", "$\\hookleftarrow$"},
        {"⟨", "$\\langle$"},
        {"⟩", "$\\rangle$"},
        {"‿", "$\\smile$"},
        {"Δ", "$\\Delta$"},
        {"Σ", "$\\Sigma$"},
        {"λ", "$\\lambda$"},
        {"α", "$\\alpha$"},
        {"β", "$\\beta$"},
        {"°", "$^\\circ$"},
        {"²", "$^2$"},
        {"⁹", "$^9$"},
    };
    const auto found = all.find(character);
    return found == all.end() ? character : found->second;
}

std::string latex_escaped(std::string_view raw) {
    const std::string text = terminal_text(raw, Lines::one);
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const size_t bytes = decode_utf8_character(text, at).bytes;
        out += in_latex(std::string_view(text).substr(at, bytes));
        at += bytes;
    }
    return out;
}

/// Whether the text has letters other than accented Latin, which pdfLaTeX's default fonts lack.
bool has_other_script(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const auto [code, bytes, is_valid] = decode_utf8_character(text, at);
        if (is_valid && code >= 0x180 && !(code >= 0x2010 && code <= 0x2026)) return true;
        at += bytes;
    }
    return false;
}

std::string latex_cell(const Cell& cell, const Column& column) {
    if (const auto* mean = std::get_if<Shared<MeanCell>>(&cell)) {
        const auto text = [&](double value) { return latex_cell(value, column); };
        const std::string interval =
            std::isnan((*mean)->low) ? "" : fmt::format(" [{}, {}]", text((*mean)->low), text((*mean)->high));
        return text((*mean)->mean) + interval + latex_escaped((*mean)->mark);
    }
    if (std::holds_alternative<std::monostate>(cell)) return "--";
    std::string value = latex_escaped(shown(cell, column, true));
    if (std::holds_alternative<SharedText>(cell)) return value;
    if (const auto* real = std::get_if<double>(&cell); real != nullptr && std::isnan(*real)) return "--";
    if (value.front() == '-') value = "$-$" + value.substr(1);
    if (const size_t exponent = value.find('e'); exponent != std::string::npos) {
        const int power = std::stoi(value.substr(exponent + 1));
        value = fmt::format("{}$\\cdot10^{{{}}}$", value.substr(0, exponent), power);
    }
    return value;
}

std::string latex(const Table& table) {
    const auto ranks = ranks_of_cells(table);
    std::string out = "\\begin{tabular}{";
    for (const Column& column : table.columns) out += is_number(column) ? 'r' : 'l';
    out += "}\n\\toprule\n";
    for (size_t c = 0; c < table.columns.size(); ++c) {
        out += (c > 0 ? " & " : "") + latex_escaped(heading(table.columns[c]));
    }
    out += " \\\\\n\\midrule\n";
    for (size_t r = 0; r < table.rows.size(); ++r) {
        for (size_t c = 0; c < table.columns.size(); ++c) {
            const std::string cell = latex_cell(table.rows[r].cells[c], table.columns[c]);
            out += c > 0 ? " & " : "";
            if (ranks[r][c] == Rank::other) {
                out += cell;
            } else if (ranks[r][c] == Rank::second) {
                out += "\\underline{" + cell + "}";
            } else if (cell.find('$') == std::string::npos) {
                out += "\\textbf{" + cell + "}";
            } else {
                out += "{\\boldmath\\textbf{" + cell + "}}";
            }
        }
        out += " \\\\\n";
    }
    const bool needs_fonts = has_other_script(out);
    return std::string("% needs \\usepackage{booktabs}") +
           (needs_fonts ? ", and XeLaTeX or LuaLaTeX with a font that contains all letters" : "") + "\n" +
           (table.note.empty() ? "" : "% " + terminal_text(table.note, Lines::one) + "\n") + out +
           "\\bottomrule\n\\end{tabular}\n";
}

std::string html(const Table& table) {
    const auto ranks = ranks_of_cells(table);
    const auto alignment = [](const Column& column) { return is_number(column) ? " class=\"number\"" : ""; };
    std::string out = "<table>\n";
    if (!table.title.empty()) out += fmt::format("<caption>{}</caption>\n", html_text(table.title));
    out += "<thead><tr>";
    for (const Column& column : table.columns)
        out += fmt::format("<th{}>{}</th>", alignment(column), html_text(heading(column)));
    out += "</tr></thead>\n<tbody>\n";
    for (size_t r = 0; r < table.rows.size(); ++r) {
        out += "<tr>";
        for (size_t c = 0; c < table.columns.size(); ++c) {
            const std::string cell = html_text(shown(table.rows[r].cells[c], table.columns[c], true));
            out += fmt::format("<td{}>{}</td>", alignment(table.columns[c]),
                               ranks[r][c] == Rank::best     ? "<b>" + cell + "</b>"
                               : ranks[r][c] == Rank::second ? "<span class=\"second\">" + cell + "</span>"
                                                             : cell);
        }
        out += "</tr>\n";
    }
    out += "</tbody>\n</table>\n";
    if (!table.note.empty()) out += fmt::format("<p>{}</p>\n", html_text(table.note));
    return out;
}

/// Returns the table without empty columns and those that repeat another (Column::repeats).
Table for_people(const Table& table) {
    const auto has_content = [&](size_t c) {
        return std::any_of(table.rows.begin(), table.rows.end(), [&](const Row& row) {
            const auto* text = std::get_if<SharedText>(&row.cells[c]);
            return text != nullptr ? !text->empty() : !std::holds_alternative<std::monostate>(row.cells[c]);
        });
    };
    const auto repeats_another = [&](size_t c) {
        const auto other = static_cast<size_t>(
            std::ranges::find(table.columns, table.columns[c].repeats, &Column::name) - table.columns.begin());
        return other < table.columns.size() &&
               std::ranges::all_of(table.rows, [&](const Row& row) { return row.cells[c] == row.cells[other]; });
    };
    Table shown{table.name, table.title, {}, std::vector<Row>(table.rows.size()), table.note};
    for (size_t r = 0; r < table.rows.size(); ++r) {
        shown.rows[r].control = table.rows[r].control;
        shown.rows[r].group = table.rows[r].group;
    }
    for (size_t c = 0; c < table.columns.size(); ++c) {
        if (!table.rows.empty() && (!has_content(c) || repeats_another(c))) continue;
        shown.columns.push_back(table.columns[c]);
        for (size_t r = 0; r < table.rows.size(); ++r) shown.rows[r].cells.push_back(table.rows[r].cells[c]);
    }
    return shown;
}

}  // namespace

std::vector<std::vector<Rank>> ranks_of_cells(const Table& table) {
    std::vector<std::vector<Rank>> ranks(table.rows.size(), std::vector<Rank>(table.columns.size(), Rank::other));
    std::map<std::string_view, std::vector<size_t>> groups;
    for (size_t r = 0; r < table.rows.size(); ++r)
        if (!table.rows[r].control) groups[table.rows[r].group].push_back(r);
    for (size_t c = 0; c < table.columns.size(); ++c) {
        const Column& column = table.columns[c];
        if (column.best == Best::none) continue;
        for (const auto& [group, rows] : groups) {
            std::vector<std::pair<double, size_t>> numbers;  // the best first
            for (const size_t r : rows)
                if (const auto value = number(table.rows[r].cells[c]))
                    numbers.emplace_back(column.best == Best::lowest ? *value : -*value, r);
            std::ranges::stable_sort(numbers, {}, &std::pair<double, size_t>::first);
            size_t n_different = 0;  // displayed numbers so far
            std::string last;
            std::vector<std::pair<size_t, Rank>> found;
            for (const auto& [key, r] : numbers) {
                std::string text = displayed(table.rows[r].cells[c], column);
                if (n_different == 0 || text != last) ++n_different;
                last = std::move(text);
                if (n_different == 1) found.emplace_back(r, Rank::best);
                if (n_different == 2 && column.second) found.emplace_back(r, Rank::second);
            }
            if (n_different < 2) continue;
            const auto n_ranked = [&](Rank rank) {
                return std::ranges::count(found, rank, &std::pair<size_t, Rank>::second);
            };
            if (n_ranked(Rank::best) > most_alike) continue;
            for (const auto& [r, rank] : found)
                if (n_ranked(rank) <= most_alike) ranks[r][c] = rank;
        }
    }
    return ranks;
}

Table safe_for_spreadsheets(Table table) {
    const auto safe = [](const std::string& text) {
        constexpr std::string_view begins_formula = "=+-@\t\r\n";
        return !text.empty() && begins_formula.find(text.front()) != std::string_view::npos ? "'" + text : text;
    };
    for (Column& column : table.columns) column.name = safe(column.name);
    for (Row& row : table.rows)
        for (Cell& cell : row.cells)
            if (auto* text = std::get_if<SharedText>(&cell)) *text = safe(*text);
    return table;
}

TableFormat table_format_from_name(std::string_view name) {
    if (name == "markdown") return TableFormat::markdown;
    if (name == "latex") return TableFormat::latex;
    const auto* const found = std::find(format_names.begin(), format_names.end(), name);
    if (found == format_names.end()) {
        throw std::invalid_argument(
            fmt::format("unknown table format '{}'; known formats: {}", name, fmt::join(format_names, ", ")));
    }
    constexpr std::array formats = {TableFormat::text,  TableFormat::csv,  TableFormat::markdown,
                                    TableFormat::latex, TableFormat::json, TableFormat::jsonl};
    return formats[static_cast<size_t>(found - format_names.begin())];
}

std::span<const std::string_view> table_format_names() { return format_names; }

std::string format_real(double value, int decimals) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    const double size = std::fabs(value);
    const double smallest = 0.5 * std::pow(10.0, -decimals);
    if (size >= 1e9 || (size > 0 && size < smallest)) return fmt::format("{:.2e}", value);
    return fmt::format("{:.{}f}", value, decimals);
}

std::string format_mean(const MeanCell& cell, int decimals) {
    const auto text = [&](double value) { return format_real(value, decimals); };
    const std::string interval = std::isnan(cell.low) ? "" : fmt::format(" [{}, {}]", text(cell.low), text(cell.high));
    return text(cell.mean) + interval + cell.mark;
}

std::string format_bytes(double bytes) {
    constexpr std::array units = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < units.size()) {
        bytes /= 1000;
        ++unit;
    }
    return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.5 ? 0 : 1, units[unit]);
}

std::string format_count(int64_t value) {
    const std::string digits = std::to_string(value);
    const size_t sign = digits.front() == '-' ? 1 : 0;
    std::string out = digits.substr(0, sign);
    for (size_t i = sign; i < digits.size(); ++i) {
        if (i > sign && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

std::string format_table(const Table& table, TableFormat format, size_t width) {
    check_shape(table);
    const bool is_for_people = format == TableFormat::text || format == TableFormat::markdown ||
                               format == TableFormat::latex || format == TableFormat::html;
    if (is_for_people && !table.for_people.empty()) {
        std::string all;
        for (const Table& each : table.for_people) all += (all.empty() ? "" : "\n") + format_table(each, format, width);
        return all;
    }
    switch (format) {
        case TableFormat::text:
            return text(for_people(table), width);
        case TableFormat::csv:
            return csv(table);
        case TableFormat::markdown:
            return markdown(for_people(table));
        case TableFormat::latex:
            return latex(for_people(table));
        case TableFormat::json:
            return json(table);
        case TableFormat::jsonl:
            return jsonl(table);
        case TableFormat::html:
            return html(for_people(table));
    }
    throw std::logic_error("unknown table format");
}

}  // namespace kvscope::analysis
