// Rows of /results/prompts. tests/cli/result_rows_test.py compares all numbers with an independent implementation.
#include "analysis/measures/result_row.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/cost_table.h"
#include "tests/trace/sample_trace.h"
#include "trace/hdf5/hdf5.h"
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
                if constexpr (std::is_same_v<decltype(member), kvscope::SharedText trace::ResultRow::*>)
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
        CHECK(std::isnan(rows[run].merged_keys));  // version 1.1
        same[run].merged_keys = same[run].merged_keys_outside = rows[run].merged_keys;
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

TEST_CASE("figures, tables and rankings of runs read stored rows") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    auto rows = result_rows_of_prompt(trace::Reader(folder / "t.h5"), 0);
    rows[2].coverage = 0.125;
    rows[2].recall = 0.25;
    rows[2].kl = 0.5;
    rows[2].bytes = rows[0].bytes / 8;
    const auto store = [&] {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.force = true});
        trace::sample::write_parts(writer);
        writer.write_results("prompts", 0, rows);
        writer.finish();
        return trace::Reader(folder / "t.h5");
    };
    const trace::Reader reader = store();
    const auto number = [](const Table& table, size_t row, const std::string& name) {
        const auto column = std::ranges::find(table.columns, name, &Column::name);
        return std::get<double>(table.rows.at(row).cells.at(static_cast<size_t>(column - table.columns.begin())));
    };
    const Table runs = cost_table(reader, 0);
    CHECK(number(runs, 2, "coverage") == 0.125);
    CHECK(number(runs, 2, "recall") == 0.25);
    CHECK(number(runs, 2, "kl_mean") == 0.5);
    CHECK(number(runs, 2, "bytes_share") == 0.125);
    FigureOptions options;
    options.runs = {"2"};
    CHECK(number(figure_definition("coverage").numbers(reader, options), 0, "share") == 0.125);
    CHECK(number(figure_definition("recall").numbers(reader, options), 0, "recall") == 0.25);
    CHECK(number(figure_definition("answers").numbers(reader, options), 0, "kl_mean") == 0.5);
    CHECK(figure_definition("retention").make(reader, options).panels.at(0).note == "coverage 12.5 %");

    rows[2].budget += 1;  // no longer the row of the run
    CHECK(result_rows_of_prompt(store(), 0)[2].coverage > 0.125);
    CHECK(result_rows_of_prompt(store(), 0)[1].coverage == rows[1].coverage);
}

TEST_CASE("rows do not keep the entries that they read") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    REQUIRE_FALSE(result_rows_of_prompt(reader, 0).empty());
    CHECK(reader.kept_for_now(0, 2).use_count() == 1);
    const auto kept = reader.kept(0, 2);
    CHECK(reader.kept_for_now(0, 2) == kept);
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

TEST_CASE("a damaged data set removes only its measures, and figures that do not show them") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const auto sound = result_rows_of_prompt(trace::Reader(folder / "t.h5"), 0);
    {
        namespace h5 = trace::h5;
        const h5::Guard guard;
        const auto path = (folder / "t.h5").string();
        h5::Handle file(h5::checked(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open for a test"), H5Fclose);
        const std::string run = "/prompts/0/runs/1/";
        for (const std::string& name : {run + "output_error", run + "step_agreement"})
            h5::checked(H5Ldelete(file.get(), name.c_str(), H5P_DEFAULT), "delete for a test");
        const std::vector<float> values(3);
        h5::write_data_set<float>(file.get(), run + "output_error", std::span<const float>(values),
                                  std::vector<size_t>{3});
    }
    const trace::Reader reader(folder / "t.h5");
    CHECK_THROWS_AS(result_rows_of_prompt(reader, 0), trace::TraceError);
    const auto rows = result_rows_of_prompt(reader, 0, ignore_damage);
    CHECK(std::isnan(rows[1].output_error));
    CHECK(std::isnan(rows[1].agreement));
    CHECK(rows[1].kl == sound[1].kl);
    CHECK(rows[1].kl_steps == sound[1].kl_steps);
    CHECK(rows[1].coverage == sound[1].coverage);
    CHECK(rows[1].kept_share == sound[1].kept_share);
    CHECK(contents_of(rows[2]) == contents_of(sound[2]));
    for (const char* name : {"coverage", "recall", "answers", "retention"}) {
        INFO(name);
        CHECK_NOTHROW(figure_definition(name).numbers(reader, {}));
    }
}

TEST_CASE("the row of a complete run that was stored without measures is computed again") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const auto sound = result_rows_of_prompt(trace::Reader(folder / "t.h5"), 0);
    auto rows = sound;
    rows[1].coverage = std::nan("");
    rows[1].kl = std::nan("");
    rows[1].sample_hash = "abc";
    trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.force = true});
    trace::sample::write_parts(writer);
    writer.write_results("prompts", 0, rows);
    writer.finish();
    const auto found = result_rows_of_prompt(trace::Reader(folder / "t.h5"), 0);
    CHECK(found[1].coverage == sound[1].coverage);
    CHECK(found[1].kl == sound[1].kl);
    CHECK(found[1].sample_hash == "abc");
}
