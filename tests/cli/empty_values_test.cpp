// No option of any command accepts an empty value, because an unset shell variable should not go unnoticed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "app/cli/command.h"
#include "app/cli/option_validators.h"

using namespace kvscope;

namespace {

std::string refusal(const cli::Command& command, const std::vector<std::string>& given) {
    CLI::App app;
    const auto action = command.declare(app);
    cli::add_value_checks_to_options(app);
    auto arguments = cli::arguments_in_canonical_form(given);
    std::reverse(arguments.begin(), arguments.end());
    try {
        app.parse(arguments);
    } catch (const CLI::ParseError& error) {
        return error.get_exit_code() == 0 ? "" : error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("no option takes an empty value") {
    int n_options = 0;
    for (const auto& command : cli::commands()) {
        CLI::App app;
        const auto action = command.declare(app);
        for (const CLI::Option* option : app.get_options()) {
            if (option->get_expected_max() == 0) continue;  // a flag, which takes no value
            if (option->get_group().empty())
                continue;  // hidden: only kvscope itself gives it, and CLI11 hides its name
            const std::string name = option->get_name();
            INFO(command.name << " " << name);
            if (!name.starts_with('-')) {
                CHECK_THAT(refusal(command, {""}), Catch::Contains("empty"));
                continue;
            }
            ++n_options;
            CHECK_THAT(refusal(command, {name, ""}), Catch::Contains(name) && Catch::Contains("empty"));
            CHECK_THAT(refusal(command, {name + "="}), Catch::Contains(name) && Catch::Contains("empty"));
        }
    }
    CHECK(n_options > 8);
}
