#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope::analysis {

/// One word of a POSIX shell's command line: as it is where nothing in it means anything to the shell, else in single
/// quotes. Control characters but newline and tab are spelt out, so that they command no terminal.
std::string shell_quoted(std::string_view word);

/// A command line for a POSIX shell, which grows by words that are quoted where they need it.
class ShellCommand {
 public:
    /// @param program with the subcommand: "kvscope run"
    explicit ShellCommand(std::string program) : text_(std::move(program)) {}

    void add(std::string_view flag);
    /// "--option=value" where the value would be taken for an option.
    /// @throws std::invalid_argument for a value that no command line can hold
    void add(std::string_view option, std::string_view value);
    /// Options with their values, which are empty where they take none.
    void add(const std::vector<std::pair<std::string, std::string>>& options);
    void add_path(std::string_view option, const std::filesystem::path& path);
    /// A path without an option.
    void add_path(const std::filesystem::path& path);

    const std::string& text() const { return text_; }

 private:
    std::string text_;
};

}  // namespace kvscope::analysis
