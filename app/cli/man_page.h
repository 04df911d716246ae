#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kvscope::cli {

/// Returns the manual page kvscope(1) in the language man(7).
[[nodiscard]] std::string man_page(CLI::App& program);

}  // namespace kvscope::cli
