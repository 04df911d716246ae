#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kvscope::cli {

/// Writes options as `--no-special`, `{on,off}` and `INT in [1 - 9]`. CLI11 writes `--no-special{false}`,
/// `TEXT:{on,off}` and `INT:INT in [1 - 9]`.
class HelpFormat : public CLI::Formatter {
 public:
    [[nodiscard]] std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
        return CLI::detail::find_and_replace(CLI::Formatter::make_option_name(option, is_positional), "{false}", "");
    }
    [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
        const std::string text = CLI::Formatter::make_option_opts(option);
        const size_t end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1);
        return end < text.size() && text[end] == ':' ? " " + text.substr(end + 1) : text;
    }
};

}  // namespace kvscope::cli
