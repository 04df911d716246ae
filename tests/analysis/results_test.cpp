#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>

#include "analysis/results/summary_drawing.h"
#include "analysis/results/summary_options.h"
#include "analysis/results/summary_table.h"
#include "analysis/results/verdicts.h"
#include "analysis/runs/task_scores.h"
#include "analysis/tables/table_format.h"
#include "tests/analysis/sample_figures.h"

using namespace kvscope;
using namespace kvscope::analysis;
using namespace kvscope::analysis::test;
using Catch::Matchers::Contains;

namespace {

using Rows = std::vector<trace::ResultRow>;

trace::ResultRow run_row(int sample, const std::string& policy, int64_t budget, double kl) {
    trace::ResultRow one;
    one.sample_id = "sample";  // Names of samples need not differ.
    one.policy = policy;
    one.parameters_json = "{}";
    one.budget = budget;
    one.budget_fraction = static_cast<double>(budget) / 100;
    one.length = 100 + sample;
    one.score = one.depth = NAN;
    one.kl = kl;
    one.bytes = 10.0 * static_cast<double>(budget);
    return one;
}

struct Run {
    std::string policy;
    int64_t budget;
    std::vector<double> kl;  ///< one per sample; infinite for a failed run
};

/// The full run has 100 entries and a KL of 0.
Rows rows_of(const std::vector<Run>& runs) {
    Rows rows;
    for (size_t i = 0; i < runs.front().kl.size(); ++i) {
        const int sample = static_cast<int>(i);
        rows.push_back(run_row(sample, "full", 100, 0));
        for (const Run& run : runs) {
            rows.push_back(run_row(sample, run.policy, run.budget, run.kl[i]));
            if (std::isinf(run.kl[i])) rows.back().status = "failed: no memory";
        }
    }
    return rows;
}

std::vector<Result> results_of(const Rows& rows, const std::string& task = "prompts", const std::string& trace = "") {
    std::vector<Result> results;
    add_table(results, rows, task, trace);
    return results;
}

size_t row_called(const Summary& summary, const std::string& label) {
    for (size_t i = 0; i < summary.rows.size(); ++i)
        if (summary.row_label(i) == label) return i;
    throw std::out_of_range(label);
}

const SummaryCell& cell_of(const Summary& summary, const std::string& row, const std::string& column) {
    for (size_t i = 0; i < summary.columns.size(); ++i)
        if (summary.columns[i].label == column) return summary.cell(0, row_called(summary, row), i);
    throw std::out_of_range(column);
}

const double nan_value = NAN, failed = INFINITY;

}  // namespace

TEST_CASE("cells contain mean, median and numbers of samples and failed runs", "[results]") {
    const auto results =
        results_of(rows_of({{"snapkv", 16, {1, 2, 3, nan_value, 6, failed}}, {"h2o", 16, {1, 1, 1, 1, 1, 1}}}));
    const Summary summary = summarize(results, {.scalar = "kl", .columns = "budget"});
    REQUIRE(summary.columns.size() == 1);
    const SummaryCell& snapkv = cell_of(summary, "snapkv", "16");
    REQUIRE(snapkv.estimate);
    CHECK(snapkv.estimate->mean == 3);  // (1 + 2 + 3 + 6) / 4
    CHECK(snapkv.estimate->median == 2.5);
    CHECK(snapkv.estimate->n == 4);
    CHECK(snapkv.estimate->n_clusters == 4);
    CHECK(snapkv.n_failed == 1);
    CHECK(snapkv.estimate->interval.low >= 1);
    CHECK(snapkv.estimate->interval.high <= 6);
    CHECK(snapkv.estimate->interval.low < 3);
    CHECK(snapkv.estimate->interval.high > 3);
    CHECK(cell_of(summary, "h2o", "16").estimate->interval.low == 1);
    CHECK(cell_of(summary, "full", "16").estimate->n == 6);  // the full run belongs to all budgets
    CHECK(cell_of(summary, "full", "16").is_full);
    CHECK(summary.n_comparisons == 0);
    CHECK_THAT(summary.note(), Contains("n = 4 to 6 samples") && Contains("Failed: 1"));
}

TEST_CASE("bytes are compared with the full run of the same sample", "[results]") {
    auto rows = rows_of({{"snapkv", 25, {1, 1}}});
    rows[2].bytes = 2000;  // full run of the second sample
    const Summary summary = summarize(results_of(rows), {.scalar = "bytes_share"});
    CHECK(summary.cell(0, row_called(summary, "snapkv"), 0).estimate->mean == Approx((0.25 + 0.125) / 2));
    CHECK(summary.cell(0, row_called(summary, "full"), 0).estimate->mean == 1);
}

TEST_CASE("one sample has no interval, and its comparison shows no difference", "[results]") {
    const auto results = results_of(rows_of({{"snapkv", 16, {2}}, {"h2o", 16, {1}}}));
    const Summary summary = summarize(results, {.scalar = "kl", .columns = "budget", .against = "h2o"});
    const SummaryCell& cell = cell_of(summary, "snapkv", "16");
    CHECK(cell.estimate->n == 1);
    CHECK(std::isnan(cell.estimate->interval.low));
    REQUIRE(cell.comparison);
    CHECK(cell.comparison->paired.estimate.mean == 1);
    CHECK(cell.comparison->paired.p == 1);
    CHECK_FALSE(cell.comparison->is_distinguishable());
}

TEST_CASE("comparisons are paired, and their p-values are adjusted by Holm's method", "[results]") {
    const std::vector<double> reference = {1, 2, 3, 4, 5, 6, 7};
    std::vector<double> higher = reference, once_missing = reference;
    for (double& value : higher) value += 0.5;
    for (double& value : once_missing) value -= 1;
    once_missing[2] = nan_value;
    const auto results = results_of(rows_of({{"h2o", 16, reference},
                                             {"snapkv", 16, higher},
                                             {"random", 16, once_missing},
                                             {"streamingllm", 16, reference}}));
    const Summary summary = summarize(results, {.scalar = "kl", .columns = "budget", .against = "h2o"});
    const auto comparison = [&](const char* policy) { return *cell_of(summary, policy, "16").comparison; };
    CHECK(cell_of(summary, "h2o", "16").is_reference);
    CHECK_FALSE(cell_of(summary, "h2o", "16").comparison);
    CHECK_FALSE(cell_of(summary, "full", "16").comparison);  // KL of full is 0 by definition
    CHECK(summary.n_comparisons == 3);                       // snapkv, random, streamingllm
    // All differences of a run have one sign, so 2 of the 2^n exchanges are as large.
    CHECK(comparison("snapkv").paired.estimate.mean == Approx(0.5));
    CHECK(comparison("snapkv").paired.p == Approx(2.0 / 128));
    CHECK(comparison("random").paired.estimate.n == 6);
    CHECK(comparison("random").paired.p == Approx(2.0 / 64));
    CHECK(comparison("streamingllm").paired.p == 1);  // equal runs
    CHECK(comparison("streamingllm").paired.estimate.mean == 0);
    // Holm: 3 × 0.015625, 2 × 0.03125, 1.
    CHECK(comparison("snapkv").adjusted_p == Approx(0.046875));
    CHECK(comparison("random").adjusted_p == Approx(0.0625));
    CHECK(comparison("streamingllm").adjusted_p == 1);
    CHECK(comparison("snapkv").is_distinguishable());
    CHECK_FALSE(comparison("random").is_distinguishable());
    CHECK_THAT(summary.note(), Contains("not distinguishable from h2o") && Contains("comparisons: 3"));

    const auto two = results_of(rows_of({{"h2o", 16, reference}, {"snapkv", 16, higher}}));
    const Summary of_two = summarize(two, {.scalar = "kl", .columns = "budget", .against = "h2o"});
    CHECK(cell_of(of_two, "snapkv", "16").comparison->adjusted_p == Approx(0.015625));
    CHECK(cell_of(of_two, "snapkv", "16").comparison->is_distinguishable());
    CHECK_THAT(of_two.note(), !Contains("No difference"));
    const Table table = summary_numbers(of_two);
    REQUIRE(table.rows.size() == 3);
    CHECK(std::get<kvscope::SharedText>(cell(table, 1, "comparison")).string() == "reference");
    CHECK(std::get<kvscope::SharedText>(cell(table, 2, "comparison")).string() == "higher");
    CHECK(std::holds_alternative<std::monostate>(cell(table, 0, "comparison")));
    CHECK(std::holds_alternative<std::monostate>(cell(table, 0, "p")));
    CHECK(whole(cell(table, 2, "pairs")) == 7);
}

TEST_CASE("a run is compared with the reference at the same budget, and full with each budget", "[results]") {
    const std::vector<double> ones(6, 1), twos(6, 2), threes(6, 3);
    const auto results =
        results_of(rows_of({{"h2o", 16, ones}, {"h2o", 32, threes}, {"snapkv", 16, twos}, {"snapkv", 32, twos}}));
    for (const bool budgets_are_rows : {false, true}) {
        SummaryRequest request{.scalar = "kl", .against = "h2o"};
        if (budgets_are_rows)
            request.rows = {"policy", "budget"};
        else
            request.columns = "budget";
        const Summary summary = summarize(results, request);
        const auto difference = [&](const std::string& policy, const std::string& budget) {
            const SummaryCell& cell = budgets_are_rows
                                          ? summary.cell(0, row_called(summary, policy + " @ " + budget), 0)
                                          : cell_of(summary, policy, budget);
            return cell.comparison->paired.estimate.mean;
        };
        CHECK(difference("snapkv", "16") == Approx(1));
        CHECK(difference("snapkv", "32") == Approx(-1));
        CHECK(summary.n_comparisons == 2);
        if (budgets_are_rows) continue;
        auto rows = rows_of({{"h2o", 16, ones}, {"h2o", 32, ones}});
        for (size_t i = 0; i < rows.size(); ++i) rows[i].score = i % 3 == 0 ? 1.0 : i % 3 == 1 ? 0.25 : 0.5;
        request.scalar = "score";  // The score of full is measured.
        const Summary scores = summarize(results_of(rows), request);
        CHECK(cell_of(scores, "full", "16").comparison->paired.estimate.mean == Approx(0.75));
        CHECK(cell_of(scores, "full", "32").comparison->paired.estimate.mean == Approx(0.5));
        CHECK(scores.n_comparisons == 2);
    }
    const Summary against_full = summarize(results, {.scalar = "kl", .columns = "budget", .against = "full"});
    CHECK(against_full.n_comparisons == 0);  // KL of full is 0 by definition
    CHECK_FALSE(cell_of(against_full, "snapkv", "32").comparison);
    CHECK_THAT(against_full.note(), Contains("No number can be compared with full."));
    CHECK_THROWS_WITH(summarize(results, {.scalar = "kl", .against = "snapvk"}), Contains("Did you mean snapkv"));
}

TEST_CASE("questions about one context are one cluster", "[results]") {
    auto rows = rows_of({{"snapkv", 16, {2, 2, 3, 3}}, {"h2o", 16, {1, 1, 2, 2}}});
    for (size_t i = 0; i < rows.size(); ++i) rows[i].context_hash = i < 6 ? "a" : "b";
    const Summary summary = summarize(results_of(rows), {.scalar = "kl", .columns = "budget", .against = "h2o"});
    const SummaryCell& cell = cell_of(summary, "snapkv", "16");
    CHECK(cell.estimate->n == 4);
    CHECK(cell.estimate->n_clusters == 2);
    CHECK(cell.comparison->paired.p == 0.5);                           // 2 of the 4 exchanges of two contexts
    CHECK(std::isnan(cell.comparison->paired.estimate.interval.low));  // of 2 contexts
    CHECK_THAT(summary.note(), Contains("n = 4 samples of 2 contexts; too few for intervals."));
}

TEST_CASE("an absent cell stays empty, and its row has no mean of the columns", "[results]") {
    const auto results = results_of(rows_of({{"snapkv", 16, {1, 3}}, {"snapkv", 32, {1, 1}}, {"h2o", 16, {2, 5}}}));
    const Summary summary = summarize(results, {.scalar = "kl", .columns = "budget"});
    CHECK_FALSE(cell_of(summary, "h2o", "32").has_rows);
    CHECK(*summary.mean_of_columns(0, row_called(summary, "snapkv")) == 1.5);  // (2 + 1) / 2
    CHECK(*summary.mean_of_columns(0, row_called(summary, "full")) == 0);
    CHECK_FALSE(summary.mean_of_columns(0, row_called(summary, "h2o")));
    const Table table = summary_table(summary);
    REQUIRE(table.columns.size() == 4);
    CHECK(table.columns[1].name == "budget_16");
    CHECK(std::holds_alternative<std::monostate>(table.rows[2].cells[2]));
    CHECK(std::holds_alternative<std::monostate>(table.rows[2].cells[3]));
    CHECK(std::get<kvscope::Shared<MeanCell>>(table.rows[1].cells[1])->mean == 2);
    CHECK(table.rows[0].control);
    CHECK_FALSE(table.rows[1].control);
    CHECK(summary_numbers(summary).rows.size() == 5);  // full twice, snapkv twice, h2o once
}

TEST_CASE("the note warns of cells with different samples, and contains the verdict on scores", "[results]") {
    std::vector<trace::ResultRow> rows = rows_of({{"h2o", 16, {1, 2}}, {"snapkv", 16, {1, 2}}});
    CHECK_THAT(summarize(results_of(rows), {.scalar = "kl"}).note(), !Contains("different samples"));
    rows.pop_back();
    CHECK_THAT(summarize(results_of(rows), {.scalar = "kl"}).note(),
               Contains("the cells of a column have different samples"));
    // Rows of a table that are samples always differ.
    CHECK_THAT(summarize(results_of(rows), {.scalar = "kl", .rows = {"length", "policy"}}).note(),
               !Contains("different samples"));
    CHECK_THAT(summarize(results_of({rows[0], rows[1]}), {.scalar = "kl"}).note(),
               Contains("n = 1 sample of 1 context;"));
    for (trace::ResultRow& row : rows) row.score = 1;
    const std::string validity = validity_of_tasks(results_of(rows));
    CHECK(validity == assess_task_validity(group_results_by_setting_and_budget(rows), Advice::hidden));
    CHECK_THAT(summarize(results_of(rows), {.scalar = "score", .validity = validity}).note(), Contains(validity));
    CHECK_THAT(summarize(results_of(rows), {.scalar = "kl", .validity = validity}).note(), !Contains(validity));
    // A sample in two traces counts once.
    for (trace::ResultRow& row : rows) row.sample_hash = std::to_string(row.length);
    std::vector<Result> of_two = results_of(rows);
    add_table(of_two, rows, "prompts", "second.h5");
    CHECK(validity_of_tasks(of_two) == validity);
}

TEST_CASE("the note says which remedy lets differences be distinguished", "[results]") {
    const auto note_of = [](size_t n_policies, size_t n_samples) {
        Rows rows;
        for (size_t sample = 0; sample < n_samples; ++sample)
            for (size_t policy = 0; policy <= n_policies; ++policy) {
                trace::ResultRow row = rows_of({{"h2o", 16, {1}}})[policy == 0 ? 0 : 1];
                row.sample_id = std::to_string(sample);
                row.score = policy == 0 ? 0 : 1;
                if (policy > 1) row.parameters_json = fmt::format(R"({{"recent": {}}})", policy);
                rows.push_back(row);
            }
        return summarize(results_of(rows), {.scalar = "score", .against = "full"}).note();
    };
    CHECK_THAT(note_of(1, 3),
               Contains("No difference can be distinguished in 1 comparisons with n = 3: use more samples"));
    CHECK_THAT(note_of(1, 20), !Contains("No difference"));
    CHECK_THAT(note_of(510, 14),
               Contains("No difference can be distinguished in 510 comparisons with n = 14: use fewer"));
    CHECK(smallest_p(3) == 0.25);
}

TEST_CASE("the order of the samples has no effect", "[results]") {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform;
    std::vector<double> a(30), b(30);
    for (double& value : a) value = uniform(random);
    for (double& value : b) value = uniform(random);
    Rows rows = rows_of({{"snapkv", 16, a}, {"h2o", 16, b}});
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].context_hash = std::string(1, static_cast<char>('a' + i / 3 / 2));
        rows[i].sample_hash = std::to_string(i / 3);
    }
    const SummaryRequest request{.scalar = "kl", .columns = "budget", .against = "h2o"};
    const Table before = summary_numbers(summarize(results_of(rows), request));
    std::vector<size_t> order(30);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::shuffle(order, random);
    Rows shuffled;
    for (const size_t sample : order)
        shuffled.insert(shuffled.end(), rows.begin() + static_cast<std::ptrdiff_t>(3 * sample),
                        rows.begin() + static_cast<std::ptrdiff_t>(3 * sample + 3));
    CHECK(format_table(summary_numbers(summarize(results_of(shuffled), request)), TableFormat::csv) ==
          format_table(before, TableFormat::csv));
    for (auto& row : rows) row.sample_hash.clear();
    for (auto& row : shuffled) row.sample_hash.clear();
    CHECK(format_table(summary_numbers(summarize(results_of(shuffled), request)), TableFormat::csv) ==
          format_table(summary_numbers(summarize(results_of(rows), request)), TableFormat::csv));
}

TEST_CASE("samples of two traces are paired by their hash, and different origins are named", "[results]") {
    Rows one = rows_of({{"snapkv", 16, {3, 4, 5}}});
    Rows other = rows_of({{"h2o", 16, {1, 1, 1}}});
    const auto name = [](Rows& rows, const std::string& device, const char* const* hashes) {
        for (size_t i = 0; i < rows.size(); ++i) {
            rows[i].model = "small";
            rows[i].device = device;
            rows[i].sample_hash = hashes[i / 2];
        }
    };
    const char* const first[] = {"x", "y", "z"};
    const char* const second[] = {"z", "w", "x"};
    name(one, "cpu", first);
    name(other, "cuda", second);
    const auto both = [&] {
        std::vector<Result> results = results_of(one, "prompts", "one");
        for (Result& result : results_of(other, "prompts", "other")) results.push_back(result);
        return results;
    };
    const SummaryRequest request{.scalar = "kl", .columns = "budget", .against = "h2o"};
    Summary summary = summarize(both(), request);
    const Comparison comparison = *cell_of(summary, "snapkv", "16").comparison;
    CHECK(comparison.paired.estimate.n == 2);  // x and z
    CHECK(comparison.paired.estimate.mean == 3);
    CHECK(summary.mixed == std::vector<std::string>{"device (cpu, cuda)"});
    CHECK_THAT(summary.note(), Contains("Warning: the runs differ in device (cpu, cuda)"));
    // The two full runs of a sample count as their mean.
    CHECK(cell_of(summary, "full", "16").estimate->n == 4);

    for (auto& row : one) row.sample_hash.clear();
    for (auto& row : other) row.sample_hash.clear();
    for (auto& row : other) row.data_hash = "0123456789abcdef";
    summary = summarize(both(), request);
    CHECK_FALSE(cell_of(summary, "snapkv", "16").comparison);
    CHECK(summary.mixed == std::vector<std::string>{"device (cpu, cuda)", "data of prompts (0123456789ab, unknown)"});
}

TEST_CASE("rules of scores are compared between rows with scores", "[results]") {
    Rows rows = rows_of({{"snapkv", 16, {1, 2}}});
    for (trace::ResultRow& row : rows) row.score = NAN;
    for (size_t i = 0; i < 2; ++i) {  // of the first sample
        rows[i].score = 1;
        rows[i].scored_as = "ruler";
    }
    const SummaryRequest request{.scalar = "kl", .columns = "budget"};
    CHECK(summarize(results_of(rows), request).mixed.empty());
    for (trace::ResultRow& row : rows) row.score = 1;
    CHECK(summarize(results_of(rows), request).mixed ==
          std::vector<std::string>{"rules of the scores of prompts (ruler, unknown)"});
}

TEST_CASE("a sample counts once if several programs or folders contain its results", "[results]") {
    Rows once = rows_of({{"snapkv", 16, {3, 4, 5}}});
    for (trace::ResultRow& row : once) {
        row.sample_hash = std::to_string(row.length);
        row.score = row.policy == "full" ? 1 : 0.5;
    }
    Rows twice;  // as `import` orders the runs of two folders
    for (trace::ResultRow row : once)
        for (row.repeat = 0; row.repeat < 2; ++row.repeat) twice.push_back(row);
    const auto n_of = [](std::vector<Result> results, const std::vector<Result>& others) {
        results.insert(results.end(), others.begin(), others.end());
        const Summary summary =
            summarize(results, {.scalar = "score", .columns = "budget", .against = results.front().setting});
        const SummaryCell& snapkv = cell_of(summary, results.back().setting, "16");
        CHECK(snapkv.comparison->paired.estimate.n == summary.cells[0].estimate->n);
        return summary.cells[0].estimate->n;
    };
    CHECK(n_of(results_of(twice), {}) == 3);
    CHECK(n_of(results_of(once, "prompts", "one"), results_of(twice, "prompts", "twice")) == 3);
    // Two models in a table answer the same samples.
    Rows models = once;
    for (trace::ResultRow row : once) {
        row.model = "other";
        models.push_back(row);
    }
    CHECK(n_of(results_of(once, "prompts", "one"), results_of(models, "prompts", "models")) == 3);
    // Results of another program have no hash. Equal names with other answers are other samples.
    for (trace::ResultRow& row : once) {
        row.sample_hash.clear();
        row.sample_id = std::to_string(row.length);
        row.source = "kvpress";
        row.answers_json = R"(["red"])";
    }
    Rows others = once;
    CHECK(n_of(results_of(once, "prompts", "one"), results_of(others, "prompts", "other")) == 3);
    for (trace::ResultRow& row : others) row.answers_json = R"(["blue"])";
    CHECK(n_of(results_of(once, "prompts", "one"), results_of(others, "prompts", "other")) == 6);
}

TEST_CASE("means over several budgets are named", "[results]") {
    const auto results = results_of(rows_of({{"snapkv", 16, {1, 3}}, {"snapkv", 128, {2, 2}}}));
    const Summary summary = summarize(results, {.scalar = "kl"});
    const SummaryCell& snapkv = summary.cell(0, row_called(summary, "snapkv"), 0);
    CHECK(snapkv.estimate->n == 2);
    CHECK(snapkv.estimate->mean == 2);
    CHECK(summary.mixed == std::vector<std::string>{"budget (16, 128)"});
    CHECK(summarize(results, {.scalar = "kl", .columns = "budget"}).mixed.empty());
    Rows timed = rows_of({{"snapkv", 16, {1, 2}}});
    for (size_t i = 0; i < timed.size(); ++i) {
        timed[i].tokens_per_s = 10;
        timed[i].batch = i < 2 ? 1 : 4;
    }
    CHECK(summarize(results_of(timed), {.scalar = "tokens_per_s", .columns = "budget"}).mixed ==
          std::vector<std::string>{"length (100, 101)", "batch (1, 4)"});
    const Summary of_times = summarize(results_of(timed), {.scalar = "tokens_per_s", .columns = "length"});
    CHECK(summary_table(of_times).columns.back().title == "Mean of medians");
    CHECK(summarize(results_of(timed),
                    {.scalar = "tokens_per_s", .rows = {"policy", "length", "batch"}, .columns = "budget"})
              .mixed.empty());
}

TEST_CASE("a measure that tasks do not record is refused with the remedy", "[results]") {
    Rows rows = rows_of({{"snapkv", 16, {1}}});
    const Scalar& recall = scalar_named("recall");
    CHECK_THROWS_WITH(require_known(recall, results_of(rows, "niah")), Contains("--prompt-from"));
    CHECK_THROWS_WITH(require_known(recall, results_of(rows)), Contains("no complete run has a value of recall"));
    for (auto& row : rows) row.source = "kvpress";
    CHECK_THROWS_WITH(require_known(recall, results_of(rows, "niah")), Contains("no complete run"));
}

TEST_CASE("rows are grouped by parameter, length, task and other settings", "[results]") {
    auto rows = rows_of({{"snapkv", 16, {1, 2}}, {"snapkv", 16, {3, 4}}, {"h2o", 16, {5, 6}}});
    for (size_t i = 1; i < rows.size(); i += 4) rows[i].parameters_json = R"({"window": 8})";
    for (size_t i = 2; i < rows.size(); i += 4) rows[i].parameters_json = R"({"window": 16})";
    auto results = results_of(rows);
    const auto columns_of = [&](const std::string& setting) {
        std::vector<std::string> labels;
        for (const auto& value : summarize(results, {.scalar = "kl", .columns = setting}).columns)
            labels.push_back(value.label);
        return labels;
    };
    CHECK(columns_of("window") == std::vector<std::string>{"8", "16", "–"});
    CHECK(columns_of("length") == std::vector<std::string>{"100", "101"});
    CHECK(columns_of("question") == std::vector<std::string>{"–"});
    results.back().row.length = 0;
    CHECK(columns_of("length") == std::vector<std::string>{"100", "101", "–"});
    results.back().row.length = 101;
    CHECK(columns_of("policy").size() == 4);
    for (Result& result : results_of(rows, "qa")) results.push_back(result);
    CHECK(columns_of("task") == std::vector<std::string>{"prompts", "qa"});
    CHECK_THROWS_WITH(columns_of("windo"), Contains("Did you mean window") && Contains("budget") && Contains("depth"));
    CHECK_THROWS_WITH(summarize(results, {.scalar = "kls"}), Contains("Did you mean kl") && Contains("kept_share"));
    CHECK(setting_without(results[1], "window") == "snapkv");
    CHECK(results[1].setting == "snapkv:window=8");
}

TEST_CASE("the best number is bold and the second best underlined; ties share their place", "[results]") {
    const std::vector<double> zeros(3, 0), ones(3, 1), twos(3, 2), nearly(3, 1.00001);
    auto rows =
        rows_of({{"snapkv", 16, ones}, {"h2o", 16, nearly}, {"random", 16, twos}, {"streamingllm", 16, {4, 5, 6}}});
    const Table table =
        summary_numbers(summarize(results_of(rows), {.scalar = "kl", .columns = "budget", .against = "snapkv"}));
    const std::string markdown = format_table(table, TableFormat::markdown);
    CHECK_THAT(markdown, Contains("**1.0000 [1.0000, 1.0000]**") && Contains("<u>2.0000 [2.0000, 2.0000] ≈</u>"));
    CHECK(markdown.find("**0.0000") == std::string::npos);  // the full run
    CHECK(markdown.find("**1.0000 [1.0000, 1.0000] ≈**") != std::string::npos);
    CHECK_THAT(markdown, Contains("5.0000 [") && Contains("comparisons: 3"));
    const std::string latex = format_table(table, TableFormat::latex);
    CHECK_THAT(latex, Contains("\\textbf{1.0000 [1.0000, 1.0000]}") &&
                          Contains("\\underline{2.0000 [2.0000, 2.0000] $\\approx$}") &&
                          Contains("% KL (nats). Means over n = 3"));
    const std::string csv = format_table(table, TableFormat::csv);
    CHECK_THAT(csv, Contains("\nkl,h2o,16,3,3,1.00001,1.00001,1.00001,1.00001,0,"));
    CHECK(csv.find("**") == std::string::npos);
}

TEST_CASE("the best number is chosen among rows of equal length", "[results]") {
    const auto rows = rows_of({{"snapkv", 16, {1, 20}}, {"h2o", 16, {3, 10}}, {"random", 16, {2, 30}}});
    const Summary summary = summarize(results_of(rows), {.scalar = "kl", .rows = {"length", "policy"}});
    const std::string markdown = format_table(summary_table(summary), TableFormat::markdown);
    CHECK_THAT(markdown, Contains("**1.0000**") && Contains("<u>2.0000</u>") && Contains("**10.0000**") &&
                             Contains("<u>20.0000</u>"));
    CHECK_THAT(markdown, !Contains("**3") && !Contains("<u>3"));
}

TEST_CASE("results-table: numbers, cells of the drawing, and choices", "[results]") {
    const SampleTrace sample;
    FigureOptions options;
    const Table table = table_of(sample.reader(), "results-table", options);
    // tests/trace/sample_trace.h: four samples; full at two budgets, snapkv at two, aperturekv at one
    REQUIRE(table.rows.size() == 5);
    CHECK(real(cell(table, 2, "mean")) == 0.5);
    CHECK(real(cell(table, 3, "mean")) == 0.75);
    CHECK(whole(cell(table, 4, "n")) == 3);
    CHECK(whole(cell(table, 4, "failed")) == 1);
    CHECK(std::get<kvscope::SharedText>(cell(table, 4, "policy")).string() == "aperturekv:window=4");
    CHECK(real(cell(table, 4, "high")) == Approx(1 - std::pow(0.025, 1.0 / 3)));  // Clopper-Pearson
    const Figure figure = made(sample.reader(), "results-table", options);
    REQUIRE(figure.panels.size() == 1);
    CHECK(layer_of<HeatMap>(figure, 0).values.at(3) == 50);
    CHECK(layer_of<TextLabel>(figure, 0, 1).text == "100.0 [39.8, 100.0]");  // 0.025^(1/4)
    const auto is_bold = [](const Shape& shape) {
        const auto* label = std::get_if<TextLabel>(&shape);
        return label && label->bold;
    };
    CHECK(std::ranges::count_if(figure.panels[0].shapes, is_bold) == 1);  // snapkv @ 24

    options.own = {{"rows", "budget,depth"}, {"blocks", "policy"}, {"against", "full"}};
    options.columns = {"length"};
    CHECK_NOTHROW(made(sample.reader(), "results-table", options));
    CHECK(table_of(sample.reader(), "results-table", options).rows.size() == 16);
    options = {};
    options.runs = {"snapkv"};
    CHECK(table_of(sample.reader(), "results-table", options).rows.size() == 2);
    options.runs = {"h2o"};
    CHECK_THROWS_WITH(table_of(sample.reader(), "results-table", options),
                      Contains("no run 'h2o'. There are aperturekv:window=4; full; snapkv"));
    options.runs = {"aprturekv"};
    CHECK_THROWS_WITH(table_of(sample.reader(), "results-table", options), Contains("Did you mean aperturekv?"));
    for (const char* figure : {"results-table", "results-curves", "results-bars"}) {
        options.runs = {"snapkv", "snapvk @ 24"};  // the first name is right
        CHECK_THROWS_WITH(table_of(sample.reader(), figure, options),
                          Contains("no run 'snapvk @ 24'. Did you mean snapkv @ 24"));
    }
    options = {};
    options.own = {{"cells", "recall"}};
    CHECK_THROWS_AS(made(sample.reader(), "results-table", options), NothingToShow);
}

TEST_CASE("results-table: unit of scores and shares, and extra columns", "[results]") {
    const SampleTrace sample;
    const auto exported = [&](const FigureOptions& options, TableFormat format) {
        return format_table(table_of(sample.reader(), "results-table", options), format);
    };
    FigureOptions options;
    const std::string csv = exported(options, TableFormat::csv);
    CHECK_THAT(csv, Contains("\nscore,snapkv,24,4,4,0.5,"));
    CHECK_THAT(exported(options, TableFormat::markdown),
               Contains("**50.0 [") && Contains("Score (%). Means over n = 3"));
    CHECK_THAT(exported(options, TableFormat::markdown), Contains("Mean|"));
    options.own = {{"unit", "fraction"}, {"extra-columns", "n"}};
    const std::string fractions = exported(options, TableFormat::markdown);
    CHECK_THAT(fractions, Contains("**0.500 [") && Contains("\n\nScore. Means") && Contains("|  n|\n"));
    CHECK(fractions.find("Mean|") == std::string::npos);
    CHECK(layer_of<HeatMap>(made(sample.reader(), "results-table", options), 0).values.at(3) == 0.5f);
    options.own = {{"unit", "percent"}, {"extra-columns", "none"}};
    CHECK(exported(options, TableFormat::csv) == csv);
    const Figure figure = made(sample.reader(), "results-table", options);
    CHECK(figure.color_scales.at(0).unit == "%");
    CHECK(figure.panels.at(0).x.ticks.size() == 2);
    for (const auto& [name, text, message] :
         std::vector<std::array<std::string, 3>>{{"unit", "per cent", "--unit is percent or fraction, not 'per cent'"},
                                                 {"extra-columns", "n,means", "not 'means'"}}) {
        options.own = {{name, text}};
        CHECK_THROWS_WITH(exported(options, TableFormat::csv), Contains(message));
    }
    const auto results = results_of(rows_of({{"snapkv", 25, {1, 2, 3}}}));
    options.own = {{"cells", "kl"}, {"unit", "percent"}};
    CHECK_THROWS_WITH(summary_request(options, {results, {}}), Contains("kl is neither; these are score, agreement"));
    for (const auto& [unit, text] : std::map<std::string, std::string>{{"", "0.250 ["}, {"percent", "25.0 ["}}) {
        options.own = {{"cells", "bytes_share"}, {"unit", unit}};
        const Table table = summary_table(summarize(results, summary_request(options, {results, {}})));
        CHECK_THAT(format_table(table, TableFormat::markdown), Contains(text));
    }
}

TEST_CASE("numbers of samples that differ within a row are a range", "[results]") {
    SummaryRequest request{.scalar = "kl", .columns = "budget"};
    request.extra_columns = {n_column};
    const auto rows = rows_of({{"snapkv", 16, {1, 2, failed}}, {"snapkv", 32, {1, 2, 3}}, {"h2o", 16, {1, 1, 1}}});
    const Table table = summary_table(summarize(results_of(rows), request));
    CHECK(table.columns.back().name == "n");
    CHECK(std::get<int64_t>(table.rows.at(0).cells.back()) == 3);
    CHECK(std::get<kvscope::SharedText>(table.rows.at(1).cells.back()).string() == "2–3");
}

TEST_CASE("a mark that more than two numbers would share is omitted", "[results]") {
    const auto ranks = [](const std::vector<double>& numbers) {
        Table table{"t", "", {{"kl", "", "", ColumnType::real, 3, Best::lowest}}, {}};
        table.columns.front().second = true;
        for (const double number : numbers) table.rows.push_back({{number}});
        std::vector<Rank> found;
        for (const auto& row : ranks_of_cells(table)) found.push_back(row.front());
        return found;
    };
    using enum Rank;
    CHECK(ranks({2, 1, 2, 3}) == std::vector{second, best, second, other});
    CHECK(ranks({2, 1, 2, 2, 3}) == std::vector{other, best, other, other, other});
    CHECK(ranks({1, 1, 2, 3}) == std::vector{best, best, second, other});
    CHECK(ranks({1, 1, 1, 2}) == std::vector{other, other, other, other});
}

TEST_CASE("timing grids have numbers of new tokens, not subsets", "[results]") {
    auto results = results_of(rows_of({{"snapkv", 16, {1, 2}}}), "timing");
    for (Result& result : results) result.row.subset = "8 new tokens";
    const SummaryRequest request{.scalar = "kl", .rows = {"policy", "subset"}, .blocks = "subset"};
    const Summary summary = summarize(results, request);
    CHECK(summary.row_settings.at(1).title == "New tokens");
    CHECK(panel_of_block(summary, 0, 1).title == "8 new tokens");
    CHECK(summary_table(summary).columns.at(0).name == "subset");  // for programs
    for (Result& result : results) result.task = "ruler";
    CHECK(panel_of_block(summarize(results, request), 0, 1).title == "Subset 8 new tokens");
}

TEST_CASE("results-bars: one bar per row in each group, with its interval", "[results]") {
    const SampleTrace sample;
    const Figure figure = made(sample.reader(), "results-bars", {});
    REQUIRE(figure.panels.size() == 1);
    CHECK(figure.panels[0].x.ticks.size() == 2);  // 24 and 48 entries
    std::map<std::string, Bars> bars;
    std::vector<Line> whiskers;
    for (const Shape& shape : figure.panels[0].shapes) {
        if (const auto* of_row = std::get_if<Bars>(&shape)) bars[of_row->label] = *of_row;
        if (const auto* line = std::get_if<Line>(&shape)) whiskers.push_back(*line);
    }
    REQUIRE(bars.size() == 3);
    CHECK(bars["snapkv"].y == std::vector<double>{50, 75});
    CHECK(bars["full"].y == std::vector<double>{100, 100});
    CHECK(figure.panels[0].y.unit == "%");
    CHECK(bars["aperturekv:window=4"].y.size() == 1);
    for (const auto& [label, of_row] : bars)
        for (const double x : of_row.x) CHECK(std::abs(x - std::round(x)) <= 0.4);
    CHECK(whiskers.size() == 5);  // one per bar
    for (const Line& whisker : whiskers) CHECK(whisker.y[0] <= whisker.y[1]);
    CHECK(figure.panels[0].y.min == 0);
    CHECK(figure.legend.size() == 3);
    CHECK(table_of(sample.reader(), "results-bars", {}).rows.size() == 5);
    FigureOptions options;
    options.own = {{"unit", "fraction"}};
    const Figure fractions = made(sample.reader(), "results-bars", options);
    CHECK(fractions.panels[0].y.unit.empty());
    CHECK(fractions.panels[0].y.max < 1.2);
}

TEST_CASE("results-curves: one curve per policy over the budget, a setting or a number", "[results]") {
    const SampleTrace sample;
    FigureOptions options;
    const Figure budgets = made(sample.reader(), "results-curves", options);
    const auto line_called = [](const Figure& figure, const std::string& label) {
        for (const Shape& shape : figure.panels.at(0).shapes)
            if (const auto* line = std::get_if<Line>(&shape); line && line->label == label) return *line;
        throw std::out_of_range(label);
    };
    CHECK(line_called(budgets, "snapkv").x == std::vector<double>{24, 48});
    CHECK(line_called(budgets, "snapkv").y == std::vector<double>{50, 75});
    CHECK(line_called(budgets, "snapkv").low.size() == 2);
    CHECK(line_called(budgets, "snapkv").high[0] > 50);
    CHECK(layer_of<Rule>(budgets, 0).value == 100);
    CHECK(budgets.panels[0].y.unit == "%");
    options.own = {{"unit", "fraction"}};
    const Figure fractions = made(sample.reader(), "results-curves", options);
    CHECK(line_called(fractions, "snapkv").y == std::vector<double>{0.5, 0.75});
    CHECK(fractions.panels[0].y.unit.empty());
    options.own = {{"y", "kept_share"}};  // a share, whose default is a fraction, as in tables
    CHECK(made(sample.reader(), "results-curves", options).panels[0].y.unit.empty());
    options.own = {{"y", "kept_share"}, {"unit", "percent"}};
    CHECK(made(sample.reader(), "results-curves", options).panels[0].y.unit == "%");
    options.own = {{"over", "length"}};
    const Figure lengths = made(sample.reader(), "results-curves", options);
    CHECK(line_called(lengths, "snapkv @ 24").x == std::vector<double>{100, 200});
    CHECK(line_called(lengths, "snapkv @ 24").y == std::vector<double>{100, 0});
    CHECK(line_called(lengths, "full").y == std::vector<double>{100, 100});
    const Table numbers = table_of(sample.reader(), "results-curves", options);
    CHECK(real(cell(numbers, 0, "x")) == 100);
    options.own = {{"over", "kept_share"}, {"y", "score"}};
    CHECK_NOTHROW(made(sample.reader(), "results-curves", options));
    options.own = {{"over", "window"}};
    CHECK(line_called(made(sample.reader(), "results-curves", options), "aperturekv @ 24").x == std::vector<double>{4});
    options.own = {{"over", "task"}};
    CHECK_THROWS_WITH(made(sample.reader(), "results-curves", options), Contains("a number of task"));
}

TEST_CASE("rows with a seen and with a hidden question are never averaged together", "[results]") {
    Rows rows;
    for (const int64_t seen : {1, 0})
        for (auto& row : rows_of({{"snapkv", 16, {1, 3}}})) {
            row.question_seen = seen;
            row.sample_hash = std::to_string(row.length);
            row.kl += seen == 0 && row.policy == "snapkv" ? 1 : 0;
            rows.push_back(row);
        }
    const auto results = results_of(rows);
    CHECK(results[1].sample == results[5].sample);  // both are answers to one question
    const SummaryRequest request = summary_request({}, {results, {}});
    CHECK(request.rows == std::vector<std::string>{"policy", "question"});
    const Summary summary = summarize(results, request);
    CHECK(cell_of(summary, "snapkv, question seen", "16").estimate->mean == 2);
    CHECK(cell_of(summary, "snapkv, question hidden", "16").estimate->mean == 3);
    CHECK(row_called(summary, "snapkv, question seen") < row_called(summary, "snapkv, question hidden"));
    FigureOptions options;
    options.columns = {"question"};
    CHECK(summary_request(options, {results, {}}).rows == std::vector<std::string>{"policy"});
    CHECK(overview_of_results(results).rows.size() == 4);
}

TEST_CASE("labels of tables name runs for --run and --against", "[results]") {
    Rows rows;
    for (const int64_t seen : {1, 0})
        for (auto& row : rows_of({{"snapkv", 16, {1, 3}}, {"snapkv", 32, {1, 2}}, {"h2o", 16, {2, 5}}})) {
            row.question_seen = seen;
            row.sample_hash = std::to_string(row.length);
            row.kl += seen == 0 && row.policy != "full" ? 1 : 0;
            rows.push_back(row);
        }
    const auto results = results_of(rows);
    const auto n_chosen = [&](const std::string& name) {
        auto chosen = results;
        FigureOptions options;
        options.runs = {name};
        options.setting_labels = {{"h2o", "H2O, ours"}};
        keep_chosen(chosen, options);
        return chosen.size();
    };
    const Table overview = overview_of_results(results);
    REQUIRE(overview.rows.size() == 8);
    for (const Row& row : overview.rows)
        CHECK(n_chosen(std::get<kvscope::SharedText>(row.cells.front()).string()) == 2);
    CHECK(n_chosen("snapkv") == 8);
    CHECK(n_chosen("snapkv, question seen") == 4);
    CHECK(n_chosen("question hidden, snapkv") == 4);
    CHECK(n_chosen("snapkv, question hidden @ 32") == 2);
    CHECK(n_chosen("snapkv, 100 @ 32") == 2);  // a sample's length
    CHECK(n_chosen("H2O, ours, question seen") == 2);
    CHECK_THROWS_WITH(n_chosen("h2o, question see"),
                      Contains("no run 'h2o, question see'. Did you mean h2o, question seen") &&
                          Contains("There are full, question hidden; full, question seen; h2o"));

    SummaryRequest request = summary_request({}, {results, {}});
    request.against = "snapkv, question seen";
    const Summary summary = summarize(results, request);
    CHECK(summary.against == "snapkv, question seen");
    CHECK(cell_of(summary, "snapkv, question seen", "16").is_reference);
    CHECK(cell_of(summary, "snapkv, question hidden", "16").comparison->paired.estimate.mean == 1);
    CHECK(cell_of(summary, "h2o, question hidden", "16").comparison->paired.estimate.mean == 2.5);
    request.against = "snapkv @ 32, question hidden";
    CHECK(cell_of(summarize(results, request), "h2o, question seen", "16").comparison->paired.estimate.mean == 1);
    CHECK(cell_of(summarize(results, request), "snapkv, question hidden", "16").comparison->paired.estimate.mean ==
          0.5);
    request.against = "snapkv";  // asked in the same way
    CHECK(cell_of(summarize(results, request), "h2o, question hidden", "16").comparison->paired.estimate.mean == 1.5);
}

TEST_CASE("the overview of a trace leaves out unknown numbers", "[results]") {
    const auto results = results_of(rows_of({{"snapkv", 16, {1, 3}}, {"h2o", 16, {2, 5}}}));
    const Table table = overview_of_results(results);
    std::vector<std::string> names;
    for (const Column& column : table.columns) names.push_back(column.name);
    CHECK(names == std::vector<std::string>{"run", "n", "kl", "kept_share", "bytes_share"});
    REQUIRE(table.rows.size() == 3);
    CHECK(std::get<kvscope::SharedText>(cell(table, 1, "run")).string() == "snapkv @ 16");
    CHECK(std::get<kvscope::Shared<MeanCell>>(cell(table, 1, "kl"))->mean == 2);
    CHECK(std::get<kvscope::Shared<MeanCell>>(cell(table, 1, "bytes_share"))->mean == Approx(0.16));
}
