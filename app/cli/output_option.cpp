#include "app/cli/output_option.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "analysis/table_format.h"

namespace kvscope::cli {

void OutputFormat::declare(CLI::App& app) {
    std::vector<std::string> names;
    for (const auto name : analysis::table_format_names()) names.emplace_back(name);
    app.add_option("--format", name_, "How to answer")->check(CLI::IsMember(names))->capture_default_str();
}

void OutputFormat::print(const analysis::Table& table) const {
    cli::print(analysis::format_table(table, analysis::table_format_from_name(name_)));
}

void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw std::runtime_error(std::string("standard output cannot be written: ") + std::strerror(errno));
}

}  // namespace kvscope::cli
