#include "app/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/shell_command.h"
#include "app/cli/option_validators.h"

namespace kvscope::cli {
namespace {

using analysis::shell_quoted;

struct Values {
    std::vector<std::string> words;
    bool are_files = false;
    bool are_folders = false;

    bool are_known() const { return are_files || are_folders || !words.empty(); }
};

struct CompletedOption {
    std::vector<std::string> short_names;  ///< without dashes
    std::vector<std::string> long_names;   ///< without dashes
    std::string help;
    bool takes_value = false;
    Values values;

    std::vector<std::string> flags() const {
        std::vector<std::string> all;
        for (const auto& name : short_names) all.push_back("-" + name);
        for (const auto& name : long_names) all.push_back("--" + name);
        return all;
    }
};

struct CompletedCommand {
    std::string name;  ///< empty for the options of the program itself
    std::string summary;
    std::vector<CompletedOption> options;
    Values operands;
};

Values values_of(CLI::Option& option) {
    const std::string type = option.get_type_name();
    const auto has = [&](std::string_view word) { return type.find(word) != std::string::npos; };
    Values values{suggested_values(option)};
    if (!values.words.empty()) return values;
    values.are_folders = has("FOLDER");
    values.are_files = has("FILE") || has("TRACE") || has("MODEL");
    return values;
}

/// Shortens a help text to the part before its details.
std::string brief(const std::string& help) { return help.substr(0, std::min(help.find("; "), help.find(" ("))); }

CompletedCommand describe_command(CLI::App& app, const std::string& name) {
    CompletedCommand command{name, app.get_description(), {}, {}};
    for (CLI::Option* option : app.get_options()) {
        if (option->get_positional()) command.operands = values_of(*option);
        if (!option->nonpositional()) continue;
        command.options.push_back({option->get_snames(), option->get_lnames(), brief(option->get_description()),
                                   option->get_items_expected_max() > 0, values_of(*option)});
    }
    return command;
}

/// Returns the program itself, with an empty name, and its commands.
std::vector<CompletedCommand> completed_commands(CLI::App& program) {
    std::vector<CompletedCommand> commands = {describe_command(program, "")};
    for (CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
        if (!command->get_group().empty()) commands.push_back(describe_command(*command, command->get_name()));
    return commands;
}

/// Puts a backslash before each of the characters in `special`.
std::string with_backslashes(std::string_view text, std::string_view special) {
    std::string out;
    for (const char c : text) {
        if (special.find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

/// Returns the words, separated by spaces, each with backslashes before the characters in `special`.
std::string escaped_words(const std::vector<std::string>& words, std::string_view special) {
    std::string out;
    for (const auto& word : words) out += (out.empty() ? "" : " ") + with_backslashes(word, special);
    return out;
}

std::string quoted_for_fish(std::string_view text) { return "'" + with_backslashes(text, "\\'") + "'"; }

// ---- bash

constexpr const char* bash_begin = R"(# Completion of kvscope for bash, printed by `kvscope --completion bash`
_kvscope() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command= words= files= IFS=$'\n'
    [[ $COMP_CWORD -eq 1 || ${COMP_WORDS[1]} == -* ]] || command=${COMP_WORDS[1]}
    # bash splits --option=value into three words.
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    previous=${previous//_/-}
    case $command,$previous in
)";

constexpr const char* bash_end = R"(    esac
    case $files in
        -f | -d)
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen "$files" -- "$current")
            ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    esac
}
complete -F _kvscope kvscope
)";

std::string bash_values(const Values& values) {
    if (values.are_files) return "files=-f";
    if (values.are_folders) return "files=-d";
    return "words=" + shell_quoted(fmt::format("{}", fmt::join(values.words, "\n")));
}

/// Returns the patterns of `case $command,$previous` for a command, each with the values to complete.
std::string bash_cases(const CompletedCommand& command) {
    std::string cases;
    std::vector<std::string> flags;
    for (const CompletedOption& option : command.options) {
        std::vector<std::string> patterns;
        for (const auto& flag : option.flags()) {
            flags.push_back(flag);
            patterns.push_back(command.name + "," + flag);
        }
        if (option.takes_value)
            cases += fmt::format("        {}) {} ;;\n", fmt::join(patterns, " | "), bash_values(option.values));
    }
    const std::string options = bash_values({flags});
    if (!command.operands.are_known()) return cases + fmt::format("        {},*) {} ;;\n", command.name, options);
    return cases + fmt::format("        {},*) if [[ $current == -* ]]; then {}; else {}; fi ;;\n", command.name,
                               options, bash_values(command.operands));
}

std::string bash_script(std::vector<CompletedCommand> commands) {
    CompletedCommand& program = commands.front();
    for (const CompletedCommand& command : commands)
        if (!command.name.empty()) program.operands.words.push_back(command.name);
    std::string text = bash_begin;
    for (const CompletedCommand& command : commands) text += bash_cases(command);
    return text + bash_end;
}

// ---- zsh

constexpr const char* zsh_end = R"(    esac
}
if [[ $funcstack[1] == _kvscope ]]; then
    _kvscope "$@"
else
    compdef _kvscope kvscope
fi
)";

/// Returns the action of _arguments that completes the values.
std::string zsh_action(const Values& values) {
    if (values.are_files) return "_files";
    if (values.are_folders) return "_files -/";
    return values.words.empty() ? " " : "(" + escaped_words(values.words, "\\: ()'\"") + ")";
}

/// Returns the arguments of _arguments for a command's options and operands.
std::string zsh_specifications(const CompletedCommand& command) {
    std::string lines;
    const auto add = [&](const std::string& text) { lines += " \\\n                " + shell_quoted(text); };
    for (const CompletedOption& option : command.options) {
        const std::string help = "[" + with_backslashes(option.help, "\\[]:") + "]";
        const std::string value = option.takes_value ? ":value:" + zsh_action(option.values) : "";
        for (const auto& name : option.short_names) add("*-" + name + (option.takes_value ? "+" : "") + help + value);
        for (const auto& name : option.long_names) add("*--" + name + (option.takes_value ? "=" : "") + help + value);
    }
    if (command.operands.are_known()) add("*:value:" + zsh_action(command.operands));
    return lines;
}

std::string zsh_script(const std::vector<CompletedCommand>& commands) {
    std::string names, cases, of_program;
    for (const CompletedCommand& command : commands) {
        if (command.name.empty()) {
            of_program = zsh_specifications(command);
            continue;
        }
        names += " \\\n            " +
                 shell_quoted(with_backslashes(command.name, "\\:") + ":" + with_backslashes(command.summary, "\\:"));
        cases += fmt::format("        {})\n            _arguments -s -S{}\n            ;;\n", command.name,
                             zsh_specifications(command));
    }
    return fmt::format(
               "#compdef kvscope\n# Completion of kvscope for zsh, printed by `kvscope --completion zsh`\n"
               "_kvscope() {{\n"
               "    if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n"
               "        local -a commands=({}\n        )\n"
               "        _describe command commands\n"
               "        return\n"
               "    fi\n"
               "    if [[ $words[2] == -* ]]; then\n        _arguments -S{}\n        return\n    fi\n"
               "    local command=$words[2]\n"
               "    shift words\n"
               "    (( CURRENT-- ))\n"
               "    case $command in\n",
               names, of_program) +
           cases + zsh_end;
}

// ---- fish

constexpr const char* fish_begin = R"(# Completion of kvscope for fish, printed by `kvscope --completion fish`
function __kvscope_command
    set -l words (commandline -opc)
    set -q words[2]; or set words[2] ''
    string match -q -- '-*' $words[2]; and set words[2] ''
    test "$words[2]" = "$argv[1]"
end
complete -c kvscope -f
)";

std::string fish_values(const Values& values) {
    if (values.are_files) return " -F";
    if (values.are_folders) return " -a '(__fish_complete_directories)'";
    return values.words.empty() ? "" : " -a " + quoted_for_fish(escaped_words(values.words, "\\' \"$()"));
}

std::string fish_script(const std::vector<CompletedCommand>& commands) {
    std::string text = fish_begin;
    for (const CompletedCommand& command : commands) {
        const std::string begin = fmt::format("complete -c kvscope -n \"__kvscope_command '{}'\"", command.name);
        if (!command.name.empty())
            text += fmt::format("complete -c kvscope -n \"__kvscope_command ''\" -a {} -d {}\n", command.name,
                                quoted_for_fish(command.summary));
        for (const CompletedOption& option : command.options) {
            text += begin;
            for (const auto& name : option.short_names) text += " -s " + name;
            for (const auto& name : option.long_names) text += " -l " + name;
            if (option.takes_value) text += " -r" + fish_values(option.values);
            text += " -d " + quoted_for_fish(option.help) + "\n";
        }
        if (command.operands.are_known()) text += begin + fish_values(command.operands) + "\n";
    }
    return text;
}

}  // namespace

const std::vector<std::string>& shells_with_completion() {
    static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
    return shells;
}

std::string completion_script(CLI::App& program, const std::string& shell) {
    const auto commands = completed_commands(program);
    if (shell == "bash") return bash_script(commands);
    return shell == "zsh" ? zsh_script(commands) : fish_script(commands);
}

}  // namespace kvscope::cli
