#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "app/cli/command.h"
#include "app/cli/completion.h"
#include "app/cli/help_format.h"
#include "app/cli/man_page.h"
#include "app/cli/option_validators.h"
#include "app/cli/stop_signal.h"
#include "app/cli/terminal.h"
#include "app/cli/version_text.h"
#include "app/program/packaged_fonts.h"
#include "common/whole_file.h"
#include "trace/records/trace_errors.h"

namespace kvscope::cli {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

const std::string can_be_replaced = " (--force replaces it)";

int guarded(const std::function<int()>& action) {
    const auto failed = [](const std::string& why, int code) {
        print_to_stderr("kvscope: " + why);
        return code;
    };
    try {
        return action();
    } catch (const std::invalid_argument& error) {
        return failed(error.what(), exit_usage);
    } catch (const FileExists& error) {
        return failed(error.what() + can_be_replaced, exit_failed);
    } catch (const trace::ReplaceableOutputExists& error) {
        return failed(error.what() + can_be_replaced, exit_failed);
    } catch (const std::bad_alloc&) {
        return failed(
            "out of memory: use shorter prompts, fewer policies and budgets, or --dtype bf16; for kvscope run, also "
            "--isolated or a smaller --window",
            exit_failed);
    } catch (const std::exception& error) {
        return failed(error.what(), exit_failed);
    }
}

int answer(const CLI::App& app, const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const auto chosen = app.get_subcommands();
    const CLI::App& command = chosen.empty() ? app : *chosen.front();
    // Unknown options are reported first, because one may be a misspelled required option.
    const std::string unknown = unknown_arguments(command, app.remaining(true));
    const std::string why = unknown.empty() ? error.what() : unknown;
    print_to_stderr(fmt::format("{}\n`kvscope {}--help` explains the {}", why,
                                chosen.empty() ? "" : command.get_name() + " ",
                                chosen.empty() ? "commands" : "options"));
    return exit_usage;
}

/// Runs a command. @returns the exit code: 0, 1 if the command failed, 2 for wrong usage
int run_program(int argc, char** argv) {
    program::use_packaged_fonts();
    CLI::App app("Shows what KV-cache compression does inside a language model.", "kvscope");
    app.set_version_flag("--version", version_text);
    std::string shell;
    bool is_manual = false;
    auto* completion = app.add_option(
        "--completion", shell,
        "Print a script with which a shell completes arguments, as in `source <(kvscope --completion bash)`");
    completion->transform(OneOf(shells_with_completion()))->type_name("SHELL");
    auto* manual = app.add_flag("--man", is_manual, "Print the manual page, as in `kvscope --man | man -l -`");
    app.require_subcommand(0, 1);
    app.formatter(std::make_shared<HelpFormat>());
    app.get_formatter()->column_width(34);

    int result = 0;
    const Command* by_default = nullptr;
    for (const auto& command : commands()) {
        CLI::App* sub = app.add_subcommand(command.name, command.summary);
        if (!command.example.empty()) sub->footer("Examples:\n" + command.example);
        if (command.hidden) sub->group("");
        sub->excludes(completion)->excludes(manual);
        auto action = command.declare(*sub);
        add_value_checks_to_options(*sub);
        sub->callback([&result, action, sub] {
            result = guarded([&] {
                check_repeated_options(*sub);
                return action();
            });
        });
        if (command.by_default) by_default = &command;
    }
    add_value_checks_to_options(app);

    auto arguments = arguments_in_canonical_form({argv + 1, argv + argc});
    if (arguments.empty()) {
        if (!by_default) {
            fmt::print("{}", app.help());
            return exit_usage;
        }
        arguments = {by_default->name};
    }
    const auto& named = arguments.front();
    const bool is_known = std::any_of(commands().begin(), commands().end(),
                                      [&](const Command& command) { return command.name == named; });
    if (!is_known && !named.starts_with('-')) {
        print_to_stderr(unknown_command(named));
        return exit_usage;
    }
    std::reverse(arguments.begin(), arguments.end());
    const int parsed = guarded([&] {
        try {
            app.parse(arguments);
        } catch (const CLI::ParseError& error) {
            return answer(app, error);
        }
        if (!shell.empty()) print_data(completion_script(app, shell));
        if (is_manual) print_data(man_page(app));
        return 0;
    });
    if (parsed != 0) return parsed;
    end_by_noted_signal();
    return result;
}

}  // namespace
}  // namespace kvscope::cli

int main(int argc, char** argv) {
    int status = kvscope::cli::run_program(argc, argv);
    if (const bool is_cut_off = std::fflush(stdout) != 0 || std::ferror(stdout) != 0; is_cut_off && status == 0) {
        std::fputs("kvscope: standard output cannot be written\n", stderr);
        status = 1;
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // Skip destructors: destroying libtorch's operator tables would take a fifth of a short command's time.
    std::fflush(nullptr);
    std::quick_exit(status);
#endif
    return status;
}
