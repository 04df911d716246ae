#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "analysis/tables/table.h"
#include "app/cli/terminal.h"

namespace kvscope::cli {

class OutputFormat {
 public:
    void declare(CLI::App& app);

    /// Writes the table to stdout, as text fitted to the terminal. @throws std::invalid_argument for --csv-safe without
    /// CSV
    void print(const analysis::Table& table) const;

    const std::string& name() const { return name_; }
    /// --csv-safe: an apostrophe precedes texts that a spreadsheet would read as formulas.
    bool is_csv_safe() const { return is_csv_safe_; }
    bool is_text() const { return name_ == "text"; }
    bool is_for_people() const;

 private:
    std::string name_ = "text";
    bool is_csv_safe_ = false;
};

}  // namespace kvscope::cli
