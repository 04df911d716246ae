#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "app/cli/command.h"
#include "app/cli/version_text.h"

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

int guarded(const std::function<int()>& action) {
    try {
        return action();
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "kvscope: {}\n", error.what());
        return exit_usage;
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "kvscope: out of memory: use a shorter prompt, fewer runs at once, or --dtype bf16\n");
        return exit_failed;
    } catch (const std::exception& error) {
        fmt::print(stderr, "kvscope: {}\n", error.what());
        return exit_failed;
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Shows what KV-cache compression does inside a language model.", "kvscope");
    app.set_version_flag("--version", kvscope::cli::version_text());
    app.require_subcommand(0, 1);
    app.get_formatter()->column_width(34);

    int result = 0;
    const kvscope::cli::Command* by_default = nullptr;
    for (const auto& command : kvscope::cli::commands()) {
        CLI::App* sub = app.add_subcommand(command.name, command.summary);
        if (!command.example.empty()) sub->footer("Examples:\n" + command.example);
        if (command.hidden) sub->group("");
        auto action = command.declare(*sub);
        sub->callback([&result, action] { result = guarded(action); });
        if (command.by_default) by_default = &command;
    }

    auto arguments = kvscope::cli::arguments_in_canonical_form({argv + 1, argv + argc});
    if (arguments.empty()) {
        if (!by_default) {
            fmt::print("{}", app.help());
            return exit_usage;
        }
        arguments = {by_default->name};
    }
    std::reverse(arguments.begin(), arguments.end());
    try {
        app.parse(arguments);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_usage;
    }
    return result;
}
