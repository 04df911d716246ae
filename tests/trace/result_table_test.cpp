// The tables /results/<task>: all columns, tables of earlier versions, and the table of prompts.
#include "trace/result_table.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include "tests/trace/sample_trace.h"
#include "trace/checks/check_trace.h"
#include "trace/hdf5/input_file.h"
#include "trace/reader.h"
#include "trace/records/result_columns.h"

using namespace kvscope::trace;

namespace {

/// Rows that form no grid, with texts of 0 to 9,000 bytes. They fill several chunks.
std::vector<ResultRow> irregular_rows(std::size_t n_rows) {
    std::mt19937_64 random(1);
    std::vector<ResultRow> rows(n_rows);
    for (ResultRow& row : rows) {
        for (const ResultColumn& column : result_columns)
            std::visit(
                [&](auto member) {
                    if constexpr (std::is_same_v<decltype(member), kvscope::SharedText ResultRow::*>) {
                        const std::size_t length = random() % 50 == 0 ? random() % 9000 : random() % 70;
                        row.*member = std::string(length, static_cast<char>('a' + random() % 26));
                    } else {
                        row.*member = static_cast<std::remove_reference_t<decltype(row.*member)>>(random() % 1000);
                    }
                },
                column.member);
        row.model = "a model";  // the reader completes rows without a model
    }
    return rows;
}

bool are_equal(const ResultRow& a, const ResultRow& b) {
    return std::ranges::all_of(result_columns,
                               [&](const ResultColumn& column) { return have_same_value(column, a, b); });
}

}  // namespace

TEST_CASE("every column is stored and read", "[trace]") {
    const sample::TemporaryFolder folder;
    ResultRow row;
    std::set<std::string_view> names;
    int value = 0;
    for (const ResultColumn& column : result_columns) {
        CHECK(names.insert(column.name).second);
        ++value;
        std::visit(
            [&](auto member) {
                if constexpr (std::is_same_v<decltype(member), kvscope::SharedText ResultRow::*>)
                    row.*member = std::to_string(value);
                else
                    row.*member = static_cast<std::remove_reference_t<decltype(row.*member)>>(value);
            },
            column.member);
    }
    row.seed = UINT64_MAX;
    Writer writer(folder / "t.h5", sample::recipe);
    sample::write_parts(writer);
    writer.write_results("niah", 0, {row, row});
    writer.finish();
    const auto rows = Reader(folder / "t.h5").results("niah");
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].data_hash.size() == 64);
    CHECK(rows[1].seed == UINT64_MAX);
    for (const ResultColumn& column : result_columns) {
        if (column.name == "data_hash") continue;
        INFO(column.name);
        std::visit([&](auto member) { CHECK(rows[1].*member == row.*member); }, column.member);
    }
}

TEST_CASE("a table without model, as of version 1.0, gets the columns about the experiment", "[trace]") {
    const sample::TemporaryFolder folder;
    const auto path = folder / "t.h5";
    sample::write(path);
    const auto rows = Reader(path).results("niah");
    REQUIRE(rows.size() == sample::results().size());
    for (const ResultRow& row : rows) {
        CHECK(row.model == "sample");
        CHECK(row.dtype == Reader(path).model().dtype);
        CHECK(row.device.empty());
        CHECK(row.question_seen == -1);
        CHECK(row.data_hash == rows[0].data_hash);
        CHECK(std::isnan(row.kl));
    }
    CHECK(rows[0].data_hash.empty());  // the texts without template are unknown
}

TEST_CASE("the recipe tells device, instructions, seed and question of earlier versions", "[trace]") {
    const sample::TemporaryFolder folder;
    const auto first_row = [&](const std::string& recipe) {
        Writer writer(folder / "t.h5", recipe, {.force = true});
        sample::write_parts(writer);
        writer.write_results("niah", 0, sample::results());
        writer.finish();
        return Reader(folder / "t.h5").results("niah").at(0);
    };
    const ResultRow on_processor =
        first_row(R"({"instructions": "avx2", "seed": 7, "prompts": [{"query_aware": false}]})");
    CHECK(on_processor.device == "cpu");
    CHECK(on_processor.instructions == "avx2");
    CHECK(on_processor.seed == 7);
    CHECK(on_processor.question_seen == 0);
    CHECK(Reader(folder / "t.h5").run(0, 1).instructions == "avx2");
    const ResultRow on_card = first_row(R"({"device": "cuda:0", "prompts": [{"query_aware": true}]})");
    CHECK(on_card.device == "cuda:0");
    CHECK(on_card.instructions.empty());
    CHECK(on_card.question_seen == 1);
    CHECK_FALSE(Reader(folder / "t.h5").run(0, 1).instructions);
}

TEST_CASE("the hash of the data depends on all samples and not on the runs and the order", "[trace]") {
    const sample::TemporaryFolder folder;
    const auto hash_of = [&](const std::vector<ResultRow>& rows) {
        Writer writer(folder / "t.h5", sample::recipe, {.force = true});
        sample::write_parts(writer);
        writer.write_results("niah", 0, rows);
        writer.finish();
        return Reader(folder / "t.h5").results("niah").at(0).data_hash;
    };
    const auto row = [](const std::string& sample, const std::string& policy, const std::string& answers) {
        ResultRow one;
        one.sample_id = one.prompt_hash = sample;
        one.policy = policy;
        one.sample_hash = sample + answers;
        return one;
    };
    const std::string hash = hash_of({row("a", "full", "[]"), row("b", "full", "[]")});
    CHECK(hash_of({row("a", "full", "[]"), row("a", "h2o", "[]"), row("b", "full", "[]")}) == hash);
    CHECK(hash_of({row("a", "full", "[]")}) != hash);
    CHECK(hash_of({row("a", "full", "[]"), row("a", "full", "[]")}) != hash_of({row("a", "full", "[]")}));
    CHECK(hash_of({row("b", "full", "[]"), row("a", "full", "[]")}) == hash);
    CHECK(hash_of({row("a", "full", "[]"), row("b", "full", "[1]")}) != hash);
    ResultRow unknown = row("c", "full", "[]");
    unknown.sample_hash = "";
    CHECK(hash_of({row("a", "full", "[]"), unknown}).empty());
}

TEST_CASE("the table of prompts is not a task", "[trace]") {
    const sample::TemporaryFolder folder;
    const auto n_errors = [&](bool with_prompt, const std::vector<ResultRow>& rows) {
        Writer writer(folder / "t.h5", sample::recipe, {.force = true});
        with_prompt ? sample::write_parts(writer) : writer.write_model(sample::model());
        writer.write_results("prompts", 0, rows);
        writer.finish();
        CHECK(Reader(folder / "t.h5").result_tasks().empty());
        CHECK(Reader(folder / "t.h5").results("prompts").size() == rows.size());
        int n = 0;
        for (const Problem& problem : find_problems(folder / "t.h5"))
            n += problem.severity == Problem::Severity::error ? 1 : 0;
        return n;
    };
    const PromptRecord prompt = sample::prompt({});
    std::vector<ResultRow> rows;
    for (const RunRecord& run : sample::runs({}, prompt)) {
        rows.push_back(row_of_prompt(sample::model(), prompt));
        add_run_attributes(rows.back(), run);
    }
    CHECK(n_errors(true, rows) == 0);
    for (const ResultColumn& column : result_columns) {
        INFO(column.name);
        std::vector<ResultRow> changed = rows;
        std::visit(
            [&](auto member) {
                if constexpr (std::is_same_v<decltype(member), kvscope::SharedText ResultRow::*>)
                    changed[1].*member = changed[1].*member + "x";
                else if (column.range.low > 0)
                    changed[1].*member += 1;
                else
                    changed[1].*member = changed[1].*member == 0 ? 1 : 0;  // NaN becomes 0
            },
            column.member);
        CHECK(n_errors(true, changed) == (column.source == ValueFrom::attributes ? 1 : 0));
    }
    rows[1].agreement = 1.5;
    CHECK(n_errors(true, rows) == 1);
    rows.pop_back();
    CHECK(n_errors(true, rows) == 1);  // a missing row is a warning
    CHECK(n_errors(false, {}) == 1);
}

TEST_CASE("rows that are read directly equal those that HDF5 reads", "[trace]") {
    const sample::TemporaryFolder folder;
    constexpr std::size_t n_rows = 6000;
    {
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer);
        writer.write_results("niah", 0, irregular_rows(n_rows));
        writer.finish();
    }
    const h5::Guard guard;
    const h5::Handle checked_file = open_input_file(folder / "t.h5");
    const h5::Handle plain_file(H5Fopen((folder / "t.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    const h5::Handle direct = h5::open_data_set(checked_file.get(), "/results/niah");
    const h5::Handle by_hdf5 = h5::open_data_set(plain_file.get(), "/results/niah");
    REQUIRE(descriptor_of_input(checked_file.get()));
    REQUIRE_FALSE(descriptor_of_input(plain_file.get()));
    const auto expected = load_results(by_hdf5.get(), "t.h5");
    const auto found = load_results(direct.get(), "t.h5");
    REQUIRE(found.size() == n_rows);
    CHECK(std::ranges::equal(found, expected, are_equal));

    const RowRange range{2500, 2000};
    const auto part = load_results(direct.get(), "t.h5", range);
    CHECK(std::ranges::equal(part, std::span(expected).subspan(range.first, range.count), are_equal));
    CHECK_THROWS_AS(load_results(direct.get(), "t.h5", RowRange{n_rows, 1}), DamagedTrace);

    const Reader reader(folder / "t.h5");
    CHECK(std::ranges::equal(reader.results("niah"), expected, are_equal));
    const Reader other = reader.with_stop({});
    CHECK(reader.results("niah").data() == other.results("niah").data());  // read once
    CHECK(std::ranges::equal(Reader(folder / "t.h5").results("niah"), expected, are_equal));
    CHECK(reader.n_results("niah") == n_rows);
    CHECK_THROWS_AS(reader.n_results("none"), std::out_of_range);
}

TEST_CASE("equal texts of a column share their characters", "[trace]") {
    const sample::TemporaryFolder folder;
    std::vector<ResultRow> rows = irregular_rows(3000);  // predictions differ more often than the reader remembers
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].policy = fmt::format("policy {}", i % 48);
        rows[i].prediction = fmt::format("answer {}", i);
    }
    {
        Writer writer(folder / "t.h5", sample::recipe);
        sample::write_parts(writer);
        writer.write_results("niah", 0, rows);
        writer.finish();
    }
    const Reader reader(folder / "t.h5");
    const auto found = reader.results("niah");
    std::set<const std::string*> policies;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        policies.insert(&found[i].policy.string());
        CHECK(found[i].policy == rows[i].policy);
        CHECK(found[i].prediction == rows[i].prediction);
    }
    CHECK(policies.size() <= 4 * 48);  // four threads read a table
}
