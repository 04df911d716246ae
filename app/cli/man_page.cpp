#include "app/cli/man_page.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <sstream>
#include <string_view>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/help_format.h"
#include "app/program/version.h"

namespace kvscope::cli {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

/// Returns a text in which roff finds no commands and no characters outside ASCII.
std::string for_roff(std::string_view text) {
    std::string out;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    for (auto left = static_cast<utf8proc_ssize_t>(text.size()); left > 0;) {
        utf8proc_int32_t character = 0;
        const auto n = utf8proc_iterate(bytes, left, &character);
        if (n <= 0) break;
        if (character >= 0x80) {
            out += fmt::format("\\[u{:04X}]", character);
        } else if (character == '\\') {
            out += "\\e";
        } else {
            if (character == '-') out += '\\';
            out += static_cast<char>(character);
        }
        bytes += n;
        left -= n;
    }
    return out;
}

/// Returns a line of text. "\&" keeps roff from reading a leading period or apostrophe as a command.
std::string line(std::string_view text) {
    return (text.starts_with('.') || text.starts_with('\'') ? "\\&" : "") + for_roff(text) + "\n";
}

std::string entry(const std::string& term, std::string_view meaning) { return ".TP\n" + term + "\n" + line(meaning); }

std::string section(const std::string& title, const Entries& entries) {
    std::string text = ".SH " + title + "\n";
    for (const auto& [term, meaning] : entries) text += entry("\\fB" + for_roff(term) + "\\fR", meaning);
    return text;
}

std::string options_of(CLI::App& app) {
    const HelpFormat formatter;
    std::string text;
    for (CLI::Option* option : app.get_options()) {
        std::vector<std::string> names;
        if (option->get_positional()) names.push_back("\\fI" + for_roff(option->get_name(true)) + "\\fR");
        for (const auto& name : option->get_snames()) names.push_back("\\fB" + for_roff("-" + name) + "\\fR");
        for (const auto& name : option->get_lnames()) names.push_back("\\fB" + for_roff("--" + name) + "\\fR");
        // A long list of values may be broken after each comma.
        const std::string values =
            CLI::detail::find_and_replace(for_roff(formatter.make_option_opts(option)), ",", ",\\:");
        text += entry(fmt::format("{}{}", fmt::join(names, ", "), values), option->get_description());
    }
    return text;
}

std::string examples() {
    std::string text;
    for (const Command& command : commands()) {
        if (command.hidden) continue;
        std::istringstream lines(command.example);
        for (std::string one; std::getline(lines, one);)
            text += (text.empty() ? "" : ".PP\n") + line(CLI::detail::trim(one));
    }
    return text;
}

const Entries files = {
    {"~/.cache/kvscope/", "Data that kvscope computes once for each model. Deleting this folder only costs time."},
    {"~/.config/kvscope/settings.json", "The app's settings and layouts."},
    {"~/.local/state/kvscope/crash.log", "The app's report of its last crash."},
};

const Entries environment = {
    {"KVSCOPE_DEFAULT_MODEL", "GGUF file or model directory that is used if -m is missing."},
    {"KVSCOPE_SIMD", "Instructions of the processor that kvscope uses: generic, avx2, avx512 or avx512_bf16."},
    {"KVSCOPE_ANY_MEMORY", "If set, kvscope starts runs for which the free memory may be too small."},
    {"KVSCOPE_CUDA_LIBRARY_DIR", "Folder that contains libkvscope_cuda.so."},
    {"KVSCOPE_TORCH_CUDA_DIR", "Folder that contains the CUDA part of libtorch."},
    {"SOURCE_DATE_EPOCH", "Date of exported PDF files, in seconds since 1970 (default: the date of the trace)."},
    {"XDG_CACHE_HOME, XDG_CONFIG_HOME, XDG_STATE_HOME", "Folders in place of ~/.cache, ~/.config and ~/.local/state."},
};

const Entries exit_status = {
    {"0", "The command succeeded."},
    {"1", "The command failed. A message on standard error gives the reason."},
    {"2", "The command line is wrong."},
};

}  // namespace

std::string man_page(CLI::App& program) {
    std::string text = fmt::format(".TH KVSCOPE 1 \"{}\" \"kvscope {}\" \"User Commands\"\n", program::commit_date(),
                                   program::version());
    // Without hyphenation and justification, options and commands can be searched and copied.
    text += ".nh\n.ad l\n.SH NAME\n" + for_roff("kvscope - " + program.get_description()) + "\n";
    text += ".SH SYNOPSIS\n.B kvscope\n[\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]]\n";
    text +=
        ".SH DESCRIPTION\n" +
        line(
            "kvscope reads a prompt with a language model, applies policies that compress the model's KV cache, and "
            "records in a trace (one HDF5 file) which tokens each policy keeps and how the predictions change. "
            "Without a command, kvscope opens the app.");
    text += options_of(program) + ".SH COMMANDS\n";
    for (const Command& command : commands()) {
        if (command.hidden) continue;
        text += ".SS " + for_roff("kvscope " + command.name) + "\n" + line(command.summary + ".");
        CLI::App& app = *program.get_subcommand(command.name);
        app.remove_option(app.get_help_ptr());  // the program's options contain --help
        text += options_of(app);
    }
    text += section("FILES", files) + section("ENVIRONMENT", environment) + section("EXIT STATUS", exit_status);
    text += ".SH EXAMPLES\n" + examples();
    text += ".SH SEE ALSO\n" + line("kvscope COMMAND --help, kvscope policies, kvscope figures, kvscope rankings");
    return text;
}

}  // namespace kvscope::cli
