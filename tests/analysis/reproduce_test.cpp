#include "analysis/reproduce.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>

#include "analysis/drawing/figure_definition.h"
#include "analysis/shell_command.h"
#include "tests/analysis/policy_trace.h"
#include "tests/policies/echo_maps_file.h"

using namespace kvscope::analysis;
using Catch::Matchers::Contains;
namespace trace = kvscope::trace;
namespace policies = kvscope::policies;

namespace {

/// Returns the word that a shell makes of a quoted word.
std::string read_by_a_shell(const std::string& word) {
    FILE* pipe = popen(("printf %s " + word).c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    std::array<char, 256> buffer{};
    for (size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
    pclose(pipe);
    return text;
}

}  // namespace

TEST_CASE("a shell returns quoted words unchanged", "[reproduce]") {
    CHECK(shell_quoted("snapkv:window=8,lambda=0.45") == "snapkv:window=8,lambda=0.45");
    CHECK(shell_quoted("") == "''");
    for (const char* word : {"", "a b", "it's", "$HOME `id` \\ \"x\"", "*", "~", "a;b&c|d", "zeile\nzwei", "ünï", "#no",
                             "(x)", "'", "!x", "\033[31mred", "a\r\nb\tc\177"}) {
        CAPTURE(word);
        CHECK(read_by_a_shell(shell_quoted(word)) == word);
        CHECK(shell_quoted(word).find_first_of("\033\r\177") == std::string::npos);
    }
}

TEST_CASE("the command contains prompt, policy, budget and all other settings", "[reproduce]") {
    const test::PolicyTrace stored({{"full", 60}, {"aperturekv:lambda=0,alpha=0.25", 40}});
    const trace::Reader reader = stored.reader();
    const std::string path = reader.path().string();
    CHECK(command_to_reproduce_run(reader, 0, 1, "models/a b.gguf", "-o.h5") ==
          "kvscope run -m 'models/a b.gguf' --prompt-from " + path +
              ":0 --policy aperturekv:lambda=0,alpha=0.25 --budget 40 --dtype f32 -n 6 -o ./-o.h5");
    CHECK_THAT(command_to_reproduce_run(reader, 0, 0), Contains("--policy full --dtype") && !Contains("--budget"));
    CHECK_THROWS_AS(command_to_reproduce_run(reader, 1, 0), FigureError);
}

TEST_CASE("the command contains the device on which a run was made, unless it is the CPU", "[reproduce]") {
    const test::PolicyTrace stored({{"full", 60}}, R"({"device": "cuda:1"})");
    const trace::Reader reader = stored.reader();
    const auto made = reproduction_of_run(reader, 0, 0);
    CHECK_THAT(made.command, Contains(" --device cuda:1 "));
    REQUIRE(made.remarks.size() == 1);
    CHECK_THAT(made.remarks[0], Contains("cuda:1"));
    for (const char* recipe : {R"({"device": 3})", "[]", "{}"}) {
        const test::PolicyTrace other({{"full", 60}}, recipe);
        CHECK_THAT(command_to_reproduce_run(other.reader(), 0, 0), !Contains("--device"));
    }
}

TEST_CASE("the command follows changes between compressed and full that the parameters do not schedule",
          "[reproduce]") {
    const std::string echo = "echokv:recent=9,maps=" + policies::test::echo_maps_for({3, 4, 2, 8});
    const test::PolicyTrace stored(
        {{"full", 60},
         {echo, 42, {1, 3}},
         {echo + ",switches=1/3", 42, {1, 3}},
         // The last of six tokens has no step: a switch scheduled for step 5 does not happen.
         {echo + ",switches=1/3/5", 42, {1, 3}},
         {echo + ",switches=1/3/4", 42, {1, 3}},
         {echo + ",switches=2", 42, {0}},
         {echo, 42}});
    const trace::Reader reader = stored.reader();
    const auto has_remark = [&](int run) {
        for (const auto& text : reproduction_of_run(reader, 0, run).remarks)
            if (text.find("switched its cache between compressed and full") != std::string::npos) return true;
        return false;
    };
    const auto switches = [&](int run) {
        const std::string command = command_to_reproduce_run(reader, 0, run);
        const size_t at = command.find("switches=");
        return at == std::string::npos ? std::string()
                                       : command.substr(at + 9, command.find_first_of(", ", at) - at - 9);
    };
    const std::vector<std::string> expected = {"", "1/3", "1/3", "1/3/5", "1/3", "0", ""};
    for (int run = 0; run < reader.n_runs(0); ++run) {
        CAPTURE(run, command_to_reproduce_run(reader, 0, run));
        CHECK(switches(run) == expected[static_cast<size_t>(run)]);
        CHECK(has_remark(run) == (run == 1 || run == 4 || run == 5));
    }
}

TEST_CASE("a policy that is unknown to this program has no command", "[reproduce]") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    CHECK_THROWS_WITH(command_to_reproduce_run(reader, 0, 4), Contains("kvslimmer"));
}
