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

    [[nodiscard]] const std::string& name() const { return name_; }
    /// Whether an apostrophe is added before CSV texts that a spreadsheet would read as formulas.
    [[nodiscard]] bool is_csv_safe() const { return is_csv_safe_; }
    [[nodiscard]] bool is_text() const { return name_ == "text"; }
    [[nodiscard]] bool is_for_people() const;

 private:
    std::string name_ = "text";
    bool is_csv_safe_ = false;
};

}  // namespace kvscope::cli
