// Each option of a run is declared once. `kvscope run` accepts and explains it, and reads the commands that reproduce a
// run.
#include "tests/run_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/option_validators.h"

#if __has_include("engine/experiment.h")  // a build with the engine

#include "app/cli/engine/declare_run_options.h"

using namespace kvscope;
using engine::RunOption;
using engine::RunOptions;

namespace {

/// Returns the options that the command line parses from words, without those of every command that runs a model.
RunOptions parsed(const RunOptions& asked) {
    RunOptions options;
    CLI::App app;
    cli::declare_run_options(app, options);
    cli::add_value_checks_to_options(app);
    std::vector<std::string> words;
    for (const auto& [option, value] : engine::to_command_line_options(asked)) {
        words.push_back(option);
        if (!value.empty()) words.push_back(value);
    }
    std::reverse(words.begin(), words.end());
    app.parse(words);
    return options;
}

}  // namespace

TEST_CASE("each declared option is an option of kvscope run and in its help") {
    const auto& commands = cli::commands();
    const auto run = std::find_if(commands.begin(), commands.end(), [](const auto& c) { return c.name == "run"; });
    REQUIRE(run != commands.end());
    CLI::App app;
    const auto action = run->declare(app);
    for (const RunOption& option : engine::run_options()) {
        CAPTURE(option.key);
        CHECK(!option.help.empty());
        const auto [flag, value] = engine::testing::words_of(option, engine::testing::with_another_value(option));
        REQUIRE(!flag.empty());
        const CLI::Option* declared = app.get_option_no_throw(flag);
        REQUIRE(declared != nullptr);
        CHECK((declared->get_items_expected_max() == 0) == value.empty());
        if (!option.of_any_model) CHECK_THAT(declared->get_description(), Catch::StartsWith(option.help));
        CHECK_THAT(app.help(), Catch::Contains(flag));
    }
}

TEST_CASE("the command line parses the printed form of each option") {
    for (const RunOption& option : engine::run_options()) {
        if (option.of_any_model) continue;
        CAPTURE(option.key);
        RunOptions asked = engine::testing::with_another_value(option);
        CHECK(parsed(asked) == asked);
        asked.seed = 7;  // --sampling-seed defaults to it
        CHECK(parsed(asked) == asked);
    }
    RunOptions one_seed;
    one_seed.seed = one_seed.sampling_seed = 18446744073709551615u;
    CHECK(parsed(one_seed) == one_seed);
    CHECK(engine::to_command_line_options(one_seed).size() == 2);  // -s and -n
}

TEST_CASE("recipes contain the options that affect results, and restore them") {
    for (const RunOption& option : engine::run_options()) {
        CAPTURE(option.key);
        const RunOptions asked = engine::testing::with_another_value(option);
        nlohmann::ordered_json recipe, usual;
        engine::write_options_to_recipe(asked, recipe);
        engine::write_options_to_recipe({}, usual);
        CHECK(recipe.contains(option.key) == (option.in_recipe != RunOption::InRecipe::no));
        CHECK(usual.contains(option.key) == (option.in_recipe == RunOption::InRecipe::always));
        RunOptions again;
        engine::read_options_from_recipe(recipe, again);
        const bool is_read = option.in_recipe != RunOption::InRecipe::no && !option.of_prompt;
        CHECK((again == asked) == is_read);
    }
}

TEST_CASE("unknown or invalid fields of a recipe change nothing") {
    RunOptions options;
    for (const char* recipe : {"[1]", "{\"temperature\": -1, \"top_p\": 2, \"window\": 0, \"new_tokens\": \"all\"}"}) {
        engine::read_options_from_recipe(nlohmann::json::parse(recipe), options);
        CHECK(options == RunOptions());
    }
    engine::read_options_from_recipe(nlohmann::json::parse(R"({"temperature": "hot", "top_p": 0.5})"), options);
    CHECK(options.top_p == 0.5);
}

TEST_CASE("the recipe equals that of earlier versions, so that their traces can be resumed") {
    nlohmann::ordered_json recipe;
    engine::write_options_to_recipe({}, recipe);
    CHECK(nlohmann::json(recipe) == nlohmann::json::parse(R"({"new_tokens": 64, "temperature": 0.0, "top_p": 1.0,
        "sampling_seed": 0, "seed": 0, "window": 32, "compare": true, "record": true})"));
    RunOptions asked;
    asked.ignore_eos = asked.alignment = asked.analyze = true;
    engine::write_options_to_recipe(asked, recipe);
    CHECK(recipe["ignore_eos"] == true);
    CHECK(recipe["alignment"] == true);
    CHECK(recipe["analyze"] == true);
}

#endif
