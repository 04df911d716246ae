#include "app/cli/table_format_option.h"

#include <stdexcept>

#include "analysis/tables/table_format.h"
#include "app/cli/option_validators.h"

namespace kvscope::cli {

void OutputFormat::declare(CLI::App& app) {
    std::vector<std::string> names;
    for (const auto name : analysis::table_format_names()) names.emplace_back(name);
    app.add_option("--format", name_, "Format of standard output")->transform(OneOf(names))->capture_default_str();
    app.add_flag("--csv-safe", is_csv_safe_,
                 "In CSV, put an apostrophe before texts that begin with =, +, -, @, a tab or a line break, so that no "
                 "spreadsheet reads them as formulas");
}

bool OutputFormat::is_for_people() const { return name_ == "text" || name_ == "md" || name_ == "tex"; }

void OutputFormat::print(const analysis::Table& table) const {
    if (is_csv_safe_ && name_ != "csv")
        throw std::invalid_argument("--csv-safe applies to CSV only, but --format is " + name_ + ": use --format csv");
    const std::string answer = analysis::format_table(is_csv_safe_ ? analysis::safe_for_spreadsheets(table) : table,
                                                      analysis::table_format_from_name(name_), terminal_width());
    if (is_for_people()) {
        cli::print(answer);
    } else {
        print_data(answer);
    }
}

}  // namespace kvscope::cli
