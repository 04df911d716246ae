#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::cli {

/// An option of `kvscope run` or `eval`, which is also a key of a sweep.
struct TraceOption {
    std::string name;                   ///< without dashes, as in "query-aware"
    std::vector<std::string> others{};  ///< other names without dashes, such as "n" and "predict"
    std::string help{};
    std::string type{};                      ///< as in the help, such as "TEXT:{on,off}"
    std::string fallback{};                  ///< default; empty if there is none
    std::vector<std::string> suggestions{};  ///< values that shells complete
    bool is_flag = false;
    bool is_list = false;

    [[nodiscard]] bool has_name(std::string_view key) const;
};

/// Returns the options that describe the contents of a trace. Omits the output and options such as --quiet.
[[nodiscard]] const std::vector<TraceOption>& trace_options();

/// Returns the option of this name, with '_' or '-', or nullptr.
[[nodiscard]] const TraceOption* find_trace_option(std::string_view key);

/// @throws std::invalid_argument for an unknown key, with similar keys
[[nodiscard]] const TraceOption& trace_option(std::string_view key);

/// Values of trace options on a command line, by option name.
struct GivenOptions {
    std::map<std::string, std::vector<std::string>> values;
    std::map<std::string, bool> flags;
};

/// Declares all trace options for another command. Each accepts several values, one per occurrence.
void declare_trace_options(CLI::App& app, GivenOptions& given);

/// Parses a command line of `kvscope run` or `eval` without running it.
/// @throws std::invalid_argument with the message that the command would print
void check_command_line(std::vector<std::string> arguments);

}  // namespace kvscope::cli
