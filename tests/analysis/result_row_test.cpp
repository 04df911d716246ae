// Rows of /results/prompts. tests/cli/result_rows_test.py compares all numbers with an independent implementation.
#include "analysis/measures/result_row.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/trace/sample_trace.h"
#include "trace/records/result_columns.h"

using namespace kvscope::analysis;
namespace trace = kvscope::trace;

namespace {

// Texts and numbers of a row. NaN equals NaN.
std::vector<std::string> contents_of(const trace::ResultRow& row) {
    std::vector<std::string> out;
    for (const auto& column : trace::result_columns)
        std::visit(
            [&](auto member) {
                if constexpr (std::is_same_v<decltype(member), std::string trace::ResultRow::*>)
                    out.push_back(row.*member);
                else
                    out.push_back(std::to_string(row.*member));
            },
            column.member);
    return out;
}

}  // namespace

TEST_CASE("rows of a trace of version 1.0 equal those of the same data in the current version") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader now(folder / "t.h5");
    const trace::Reader before(std::filesystem::path(KVSCOPE_TEST_DATA) / "trace" / "v1.0.h5");
    const auto rows = result_rows_of_prompt(before, 0);
    auto same = result_rows_of_prompt(now, 0);
    REQUIRE(rows.size() == static_cast<size_t>(before.n_runs(0)));
    REQUIRE(same.size() == rows.size());
    for (size_t run = 0; run < rows.size(); ++run) {
        INFO("run " << run);
        CHECK(std::isnan(rows[run].recall));  // version 1.0 has no attention of the answer
        same[run].recall = rows[run].recall;
        if (rows[run].policy == "think") same[run].budget_fraction = 1;  // then a share of entries, not of bytes
        CHECK(contents_of(rows[run]) == contents_of(same[run]));
    }
    const auto kl = before.read<float>(trace::Place::of_run(0, 2), trace::schema::run::step_kl);
    CHECK(rows[2].kl == Approx(std::accumulate(kl.begin(), kl.end(), 0.0) / static_cast<double>(kl.size())));
    CHECK(rows[6].status == "failed: expected a budget above the window");
    CHECK(std::isnan(rows[6].coverage));
    CHECK(std::isnan(rows[6].prefill_s));
    CHECK(rows[4].peak_bytes == 1 << 20);
    CHECK(rows[0].commit.empty());
}

TEST_CASE("a run that exists only in memory has a row") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader file(folder / "t.h5");
    auto record = file.run_record(0, 2);
    record.label = "what-if";
    record.cache_bytes.clear();
    const trace::Reader reader = file.with_run(0, record);
    const auto rows = result_rows_of_prompt(reader, 0);
    REQUIRE(rows.size() == static_cast<size_t>(file.n_runs(0)) + 1);
    CHECK(rows.back().recall == rows[2].recall);
    CHECK(rows.back().coverage == rows[2].coverage);
    CHECK(std::isnan(rows.back().bytes));
    CHECK(rows[2].bytes > 0);
}
