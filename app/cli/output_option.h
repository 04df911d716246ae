#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "analysis/tables/table.h"
#include "app/cli/terminal.h"

namespace kvscope::cli {

/// `--format text|json|jsonl|csv|md|tex` of a command that answers on standard output.
class OutputFormat {
 public:
    void declare(CLI::App& app);

    /// Writes the table to standard output; as text it fits the terminal.
    /// @throws std::runtime_error where it cannot be written.
    void print(const analysis::Table& table) const;

    const std::string& name() const { return name_; }
    /// --csv-safe: texts that a spreadsheet would read as formulas begin with an apostrophe.
    bool is_csv_safe() const { return is_csv_safe_; }
    bool is_text() const { return name_ == "text"; }
    /// text, md and tex; the others are read by programs.
    bool is_for_people() const;

 private:
    std::string name_ = "text";
    bool is_csv_safe_ = false;
};

}  // namespace kvscope::cli
