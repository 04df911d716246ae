#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope::analysis {

/// Quotes a word for a POSIX shell if necessary, and escapes control characters.
[[nodiscard]] std::string shell_quoted(std::string_view word);

/// Builds a command line for a POSIX shell and quotes words where necessary.
class ShellCommand {
 public:
    /// @param program with its subcommand: "kvscope run"
    explicit ShellCommand(std::string program) : text_(std::move(program)) {}

    void add(std::string_view flag);
    /// Adds an option with its value, as "--option=value" if the value looks like an option.
    /// @throws std::invalid_argument if a command line cannot contain the value
    void add(std::string_view option, std::string_view value);
    /// Adds options with their values, which are empty for flags.
    void add(const std::vector<std::pair<std::string, std::string>>& options);
    void add_path(std::string_view option, const std::filesystem::path& path);
    /// Adds a path without an option.
    void add_path(const std::filesystem::path& path);

    [[nodiscard]] const std::string& text() const { return text_; }

 private:
    std::string text_;
};

}  // namespace kvscope::analysis
