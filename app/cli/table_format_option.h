#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "analysis/tables/table.h"
#include "app/cli/terminal.h"

namespace kvscope::cli {

class OutputFormat {
 public:
    void declare(CLI::App& app);

    /// Prints the table to stdout. @throws std::invalid_argument if --csv-safe is given without --format csv
    void print(const analysis::Table& table) const;

    const std::string& name() const { return name_; }
    /// Whether an apostrophe is added before CSV texts that a spreadsheet would read as formulas.
    bool is_csv_safe() const { return is_csv_safe_; }
    bool is_text() const { return name_ == "text"; }
    bool is_for_people() const;

 private:
    std::string name_ = "text";
    bool is_csv_safe_ = false;
};

}  // namespace kvscope::cli
