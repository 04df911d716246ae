// Files of all released versions, and one of another program, can still be opened.
#include <catch2/catch.hpp>

#include "tests/trace/sample_trace.h"
#include "trace/checks/check_trace.h"
#include "trace/reader.h"

using namespace kvscope::trace;

namespace {

std::filesystem::path stored(const std::string& name) {
    return std::filesystem::path(KVSCOPE_TEST_DATA) / "trace" / name;
}

}  // namespace

// Written by sample::write(path) of the release with that version.
TEST_CASE("a trace of version 1.0", "[trace]") {
    CHECK(find_problems(stored("v1.0.h5")).empty());
    const Reader reader(stored("v1.0.h5"));
    CHECK(reader.version() == "1.0");
    REQUIRE(reader.n_prompts() == 1);
    REQUIRE(reader.n_runs(0) == 7);
    CHECK(reader.model().name == "sample");
    CHECK(reader.token_text(0)[0] == " \u00e9t\u00e9");
    CHECK(reader.kept(0, 3)->count(2, 1) == 20);
    CHECK(reader.scores(0, 3, 2).size() == 2U * 48U);
    CHECK(reader.run(0, 4).peak_bytes == 1U << 20);
    CHECK(reader.run(0, 6).message == "expected a budget above the window");
}

// Written by the example "write" of docs/trace-format.md.
TEST_CASE("a run imported from Python", "[trace]") {
    int errors = 0;
    int warnings = 0;
    for (const Problem& problem : find_problems(stored("imported.h5"))) {
        INFO(problem.path << ": expected " << problem.expected << ", found " << problem.found);
        (problem.severity == Problem::Severity::error ? errors : warnings) += 1;
        CHECK(problem.severity == Problem::Severity::warning);
    }
    CHECK(errors == 0);
    CHECK(warnings > 0);  // about measures that were not recorded
    const Reader reader(stored("imported.h5"));
    CHECK(reader.complete());
    CHECK(reader.prompt(0).window == 0);
    CHECK(reader.prompt(0).query_aware);
    CHECK(reader.token_text(0)[11] == " token11");
    CHECK(reader.run(0, 1).policy == "my-policy");
    CHECK(reader.full_run(0) == 0);
    const auto row = reader.kept(0, 1)->row(1, 1);
    CHECK(std::vector<std::uint32_t>(row.begin(), row.end()) == std::vector<std::uint32_t>{0, 3, 4, 9, 10, 11});
    CHECK_FALSE(reader.has(Place::of_prompt(0), schema::prompt::window_attention));
    CHECK_THROWS_AS(reader.window_attention(0, 0), DamagedTrace);
}
