#include "analysis/shell_command.h"

#include <fmt/format.h>

#include <stdexcept>

#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

/// Longest word of a Linux command line, including the terminating zero.
constexpr size_t most_word_bytes = 128 << 10;

/// Returns the path, with "./" in front if the path looks like an option.
std::string as_path(const std::filesystem::path& path) {
    return path.string().starts_with('-') ? "./" + path.string() : path.string();
}

}  // namespace

std::string shell_quoted(std::string_view word) {
    constexpr std::string_view unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(unquoted) == std::string_view::npos) return std::string(word);
    std::string quoted = "'";
    for (const char c : word) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\'') {
            quoted += "'\\''";
        } else if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) {
            quoted += fmt::format("'\"$(printf '\\{:03o}')\"'", byte);
        } else {
            quoted += c;
        }
    }
    return quoted + "'";
}

void ShellCommand::add(std::string_view flag) { text_ += fmt::format(" {}", flag); }

void ShellCommand::add(std::string_view option, std::string_view value) {
    if (value.size() + option.size() + 2 > most_word_bytes)
        throw std::invalid_argument(fmt::format(
            "a text of {} bytes is too long for a command line, which takes at most {}: save it in a file and use "
            "the file instead",
            format_count(static_cast<int64_t>(value.size())), format_count(static_cast<int64_t>(most_word_bytes))));
    const bool is_like_option = value.starts_with('-') || value.starts_with('[');
    text_ += fmt::format(" {}{}{}", option, is_like_option ? "=" : " ", shell_quoted(value));
}

void ShellCommand::add(const std::vector<std::pair<std::string, std::string>>& options) {
    for (const auto& [option, value] : options) value.empty() ? add(option) : add(option, value);
}

void ShellCommand::add_path(std::string_view option, const std::filesystem::path& path) { add(option, as_path(path)); }

void ShellCommand::add_path(const std::filesystem::path& path) { add(shell_quoted(as_path(path))); }

}  // namespace kvscope::analysis
