#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "analysis/tables/table.h"
#include "app/cli/terminal.h"

namespace kvscope::cli {

/// The option `--format text|json|jsonl|csv|md|tex` of a command that prints a table.
class OutputFormat {
 public:
    void declare(CLI::App& app);

    /// Writes the table to stdout; as text, it is fitted to the terminal's width.
    /// @throws std::runtime_error if stdout cannot be written, std::invalid_argument for --csv-safe with another format
    void print(const analysis::Table& table) const;

    const std::string& name() const { return name_; }
    /// --csv-safe: an apostrophe precedes texts that a spreadsheet would read as formulas.
    bool is_csv_safe() const { return is_csv_safe_; }
    bool is_text() const { return name_ == "text"; }
    /// Whether the format is text, md or tex.
    bool is_for_people() const;

 private:
    std::string name_ = "text";
    bool is_csv_safe_ = false;
};

}  // namespace kvscope::cli
