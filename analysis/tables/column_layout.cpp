#include "analysis/tables/column_layout.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>

#include "analysis/tables/terminal_text.h"
#include "common/utf8.h"

namespace kvscope::analysis {
namespace {

constexpr size_t gap = 2;
constexpr size_t readable = 24;    // text columns are not narrowed below this width to make space for others
constexpr size_t widest_key = 40;  // key columns are not narrowed below this width

size_t longest_word(std::string_view text) {
    size_t longest = 0;
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        longest = std::max(longest, terminal_display_width(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return longest;
}

size_t fitting(std::string_view text, size_t width) {
    size_t at = 0;
    size_t columns = 0;
    while (at < text.size()) {
        const size_t bytes = decode_utf8_character(text, at).bytes;
        columns += terminal_display_width(text.substr(at, bytes));
        if (columns > width && at > 0) break;
        at += bytes;
    }
    return at;
}

struct ColumnWidths {
    size_t natural = 0;  ///< width of the widest cell
    size_t least = 0;    ///< The column is not narrowed below this width.
};

size_t total(std::span<const size_t> widths) {
    return std::accumulate(widths.begin(), widths.end(), widths.empty() ? 0 : gap * (widths.size() - 1));
}

class Layout {
 public:
    Layout(const TextCells& cells, const std::vector<bool>& is_number) : cells_(cells), is_number_(is_number) {
        const auto first_text = std::find(is_number.begin(), is_number.end(), false);
        n_keys_ = first_text == is_number.end() ? 0 : static_cast<size_t>(first_text - is_number.begin()) + 1;
        for (size_t c = 0; c < is_number.size(); ++c) columns_.push_back(widths_of(c));
    }

    std::string text(size_t width) const {
        std::vector<size_t> all(columns_.size());
        std::iota(all.begin(), all.end(), size_t{0});
        if (width == 0) return part(all, natural(all));
        std::string out;
        for (const auto& columns : parts(all, width)) {
            if (!out.empty()) out += '\n';
            out += part(columns, widened(columns, width));
        }
        return out;
    }

 private:
    ColumnWidths widths_of(size_t column) const {
        const std::string& heading = cells_[0][column];
        ColumnWidths widths{terminal_display_width(heading), longest_word(heading)};
        size_t widest = 0, word = 0;
        for (size_t line = 1; line < cells_.size(); ++line) {
            widest = std::max(widest, terminal_display_width(cells_[line][column]));
            word = std::max(word, longest_word(cells_[line][column]));
        }
        widths.natural = std::max(widths.natural, widest);
        const size_t least_of_text = column + 1 == n_keys_ ? std::min(widest, widest_key) : std::min(word, readable);
        widths.least = std::max(widths.least, is_number_[column] ? widest : least_of_text);
        return widths;
    }

    std::vector<size_t> natural(std::span<const size_t> columns) const {
        std::vector<size_t> widths;
        for (const size_t c : columns) widths.push_back(columns_[c].natural);
        return widths;
    }

    std::vector<size_t> least(std::span<const size_t> columns) const {
        std::vector<size_t> widths;
        for (const size_t c : columns) widths.push_back(columns_[c].least);
        return widths;
    }

    /// Returns the columns of each block. Each begins with the key columns, unless they exceed half the width.
    std::vector<std::vector<size_t>> parts(const std::vector<size_t>& all, size_t width) const {
        if (total(least(all)) <= width) return {all};
        std::vector<size_t> keys(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n_keys_));
        if (2 * total(least(keys)) > width && keys.size() > 1) keys.erase(keys.begin(), keys.end() - 1);
        std::vector<std::vector<size_t>> found(1, std::vector<size_t>(all.begin(), all.begin() + n_keys_));
        for (size_t c = n_keys_; c < all.size(); ++c) {
            auto& last = found.back();
            last.push_back(c);
            const size_t n_before = found.size() == 1 ? n_keys_ : keys.size();
            if (total(least(last)) <= width || last.size() == n_before + 1) continue;
            last.pop_back();
            found.push_back(keys);
            found.back().push_back(c);
        }
        return found;
    }

    /// Returns column widths. Width beyond the minimum goes, one cell at a time, to the column with the most lines.
    std::vector<size_t> widened(std::span<const size_t> columns, size_t width) const {
        if (auto widths = natural(columns); total(widths) <= width) return widths;
        std::vector<size_t> widths = least(columns);
        for (size_t taken = total(widths); taken < width; ++taken) {
            size_t neediest = 0;
            double most_lines = 1;
            for (size_t i = 0; i < columns.size(); ++i) {
                const double lines = static_cast<double>(columns_[columns[i]].natural) /
                                     static_cast<double>(std::max<size_t>(widths[i], 1));
                if (lines > most_lines) {
                    most_lines = lines;
                    neediest = i;
                }
            }
            if (most_lines <= 1) break;
            ++widths[neediest];
        }
        return widths;
    }

    std::string part(std::span<const size_t> columns, std::span<const size_t> widths) const {
        std::string out;
        for (const auto& line : cells_) {
            std::vector<std::vector<std::string>> broken;
            size_t height = 1;
            for (size_t i = 0; i < columns.size(); ++i) {
                broken.push_back(break_into_lines(line[columns[i]], widths[i]));
                height = std::max(height, broken.back().size());
            }
            for (size_t h = 0; h < height; ++h) {
                std::string row;
                for (size_t i = 0; i < columns.size(); ++i) {
                    const std::string text = h < broken[i].size() ? broken[i][h] : "";
                    const size_t length = terminal_display_width(text);
                    const std::string fill(widths[i] > length ? widths[i] - length : 0, ' ');
                    row += (i > 0 ? std::string(gap, ' ') : "") + (is_number_[columns[i]] ? fill + text : text + fill);
                }
                while (!row.empty() && row.back() == ' ') row.pop_back();
                out += row + '\n';
            }
        }
        return out;
    }

    const TextCells& cells_;
    const std::vector<bool>& is_number_;
    size_t n_keys_ = 0;
    std::vector<ColumnWidths> columns_;
};

}  // namespace

std::vector<std::string> break_into_lines(const std::string& text, size_t width) {
    std::vector<std::string> lines;
    std::string_view rest = text;
    while (terminal_display_width(rest) > width) {
        size_t end = fitting(rest, width);
        if (end == rest.size()) break;
        size_t next = end;
        if (rest[end] == ' ') {
            next = end + 1;
        } else if (const size_t space = rest.rfind(' ', end); space != std::string_view::npos && space > 0) {
            end = space;
            next = space + 1;
        }
        lines.emplace_back(rest.substr(0, end));
        rest.remove_prefix(next);
    }
    lines.emplace_back(rest);
    return lines;
}

std::string format_aligned_columns(const TextCells& cells, const std::vector<bool>& is_number, size_t width) {
    return Layout(cells, is_number).text(width);
}

}  // namespace kvscope::analysis
