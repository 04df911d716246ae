#include "app/results/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/results/unusable_file.h"

namespace kvscope::results {
namespace {

class CsvReader {
 public:
    CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {
        if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
        const size_t end = text_.find('\n');
        ends_with_return_ = end != std::string_view::npos && end > 0 && text_[end - 1] == '\r';
    }

    /// Returns nullopt at the end of the text.
    std::optional<std::vector<std::string>> next_row() {
        if (at_ >= text_.size()) return std::nullopt;
        first_line_of_row_ = line_;
        std::vector<std::string> fields;
        while (true) {
            bool is_last = false;
            fields.push_back(text_.substr(at_).starts_with('"') ? quoted_field(is_last) : plain_field(is_last));
            if (is_last) return fields;
        }
    }
    /// Returns the number, from 1, of the line in which the last row begins.
    [[nodiscard]] size_t line() const { return first_line_of_row_; }

 private:
    std::string plain_field(bool& is_last) {
        const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
        std::string field(text_.substr(at_, end - at_));
        at_ = end;
        end_field(is_last);
        if (is_last && ends_with_return_ && field.ends_with('\r')) field.pop_back();
        return field;
    }

    std::string quoted_field(bool& is_last) {
        std::string field;
        ++at_;
        while (true) {
            const size_t end = text_.find('"', at_);
            if (end == std::string_view::npos)
                throw UnusableFile(fmt::format(
                    "{}:{}: expected a quotation mark at the end of a field, found the end of the file. Copy the file "
                    "again",
                    file_, first_line_of_row_));
            field += text_.substr(at_, end - at_);
            at_ = end + 1;
            if (!text_.substr(at_).starts_with('"')) break;
            field += '"';
            ++at_;
        }
        line_ += static_cast<size_t>(std::ranges::count(field, '\n'));
        if (ends_with_return_ && text_.substr(at_).starts_with("\r\n")) ++at_;
        end_field(is_last);
        return field;
    }

    /// Moves after the separator or the line feed.
    void end_field(bool& is_last) {
        is_last = at_ >= text_.size() || text_[at_] == '\n';
        if (!is_last && text_[at_] != ',')
            throw UnusableFile(
                fmt::format("{}:{}: expected a comma after a quotation mark, found '{}'. Copy the file "
                            "again",
                            file_, first_line_of_row_, text_[at_]));
        if (is_last) ++line_;
        ++at_;
    }

    std::string_view text_;
    const std::string& file_;
    size_t at_ = 0;
    size_t line_ = 1, first_line_of_row_ = 1;
    bool ends_with_return_ = false;
};

std::string field_as_csv(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

}  // namespace

std::optional<size_t> CsvTable::column(std::string_view name) const {
    const auto found = std::ranges::find(columns, name);
    if (found == columns.end()) return std::nullopt;
    return static_cast<size_t>(found - columns.begin());
}

CsvTable read_csv(std::string_view text, const std::string& file) {
    CsvReader reader(text, file);
    CsvTable table;
    table.columns = reader.next_row().value_or(std::vector<std::string>());
    while (auto row = reader.next_row()) {
        if (row->size() != table.columns.size())
            throw UnusableFile(
                fmt::format("{}:{}: expected {} fields as in the first line, found {}. Copy the file again", file,
                            reader.line(), table.columns.size(), row->size()));
        table.rows.push_back(*std::move(row));
    }
    return table;
}

std::string csv_text(const CsvTable& table) {
    std::string out;
    const auto add = [&](const std::vector<std::string>& row) {
        for (size_t i = 0; i < row.size(); ++i) out += (i > 0 ? "," : "") + field_as_csv(row[i]);
        out += '\n';
    };
    add(table.columns);
    for (const auto& row : table.rows) add(row);
    return out;
}

}  // namespace kvscope::results
