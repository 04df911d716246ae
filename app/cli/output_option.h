#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "analysis/table.h"

namespace kvscope::cli {

/// `--format text|json|jsonl|csv|md|tex` of a command that answers on standard output.
class OutputFormat {
 public:
    void declare(CLI::App& app);

    /// Writes the table to standard output. @throws std::runtime_error where it cannot be written.
    void print(const analysis::Table& table) const;

    const std::string& name() const { return name_; }
    bool is_text() const { return name_ == "text"; }

 private:
    std::string name_ = "text";
};

/// Writes to standard output and checks that it arrived.
/// @throws std::runtime_error
void print(const std::string& text);

}  // namespace kvscope::cli
