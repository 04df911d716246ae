// Causes of wrong answers. tests/cli/wrong_answers_test.py compares those of an evaluation with NumPy.
#include "analysis/measures/wrong_answer.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "analysis/tables/table_format.h"
#include "tests/analysis/kept_example.h"
#include "tests/analysis/sample_figures.h"
#include "trace/writer.h"

using namespace kvscope;
using namespace kvscope::analysis;
using namespace kvscope::analysis::test;
using Catch::Matchers::Contains;

namespace {

constexpr float none = NAN;

/// One layer, two heads, six tokens. Head 0 keeps {0, 5}, head 1 keeps {1, 5}; the last token has no score.
struct Example {
    OwnedSets sets{1, 2, 6, {{0, 5}, {1, 5}}};
    trace::RunRecord run{};
    std::vector<uint32_t> evidence{2};
    std::vector<AttentionPeak> peaks{{1, 0, 0}};

    [[nodiscard]] trace::ResultRow row() const {
        trace::ResultRow row;
        const KeptSets kept = sets.view();
        set_cause(row, {run, kept, evidence, peaks, 2});
        return row;
    }
};

}  // namespace

TEST_CASE("little attention: less than an equal share to each lost token in every head") {
    Example example;
    example.run.scores = {9, 1, 2, 3, 4, none, 1, 9, 2, 3, 4, none};
    example.peaks = {{0.166f, 0, 0}};
    CHECK(example.row().cause == "little attention");
    CHECK(std::isnan(example.row().cause_gap));
    example.peaks = {{0.167f, 0, 0}};
    CHECK(example.row().cause == "ranked low");
    example.evidence = {2, 5};  // the attention to a token that is kept has no effect
    example.peaks = {{0.1f, 0, 0}, {0.9f, 0, 0}};
    CHECK(example.row().cause == "little attention");
    example.peaks = {{0.2f, 0, 0}, {0.9f, 0, 0}};
    CHECK(example.row().cause == "ranked low");
    example.run.scores.clear();
    CHECK(example.row().cause == "undetermined");
    example.peaks.clear();
    CHECK(example.row().cause == "undetermined");
}

TEST_CASE("the highest attention of all heads and layers, and the first head that gives it") {
    std::vector<AttentionPeak> peaks(2);
    const std::vector<uint32_t> evidence{0, 2};
    raise_peaks(std::vector<float>{0.1f, 0.9f, 0, 0.3f, 0.2f, 0.5f}, 0, 2, evidence, peaks);
    CHECK(peaks == std::vector<AttentionPeak>{{0.3f, 0, 1}, {0.5f, 0, 1}});
    raise_peaks(std::vector<float>{0.3f, 0, 0.8f, 0, 0.9f, 0.1f}, 1, 2, evidence, peaks);
    CHECK(peaks == std::vector<AttentionPeak>{{0.3f, 0, 1}, {0.8f, 1, 0}});
}

TEST_CASE("a token is lost if the head that attends to it most drops it, whatever other heads keep") {
    Example example;
    example.run.scores = {9, 5, 2, 3, 4, none, 1, 9, 2, 3, 4, none};
    example.evidence = {1};
    example.peaks = {{1, 0, 1}};
    CHECK(example.row().cause == "kept");
    example.peaks = {{1, 0, 0}};
    CHECK(example.row().cause == "ranked low");
    CHECK(example.row().cause_head == 0);
    CHECK(example.row().cause_gap == 1);
    CHECK(example.row().cause_token == 1);
    // Four query heads share the two rows.
    trace::ResultRow row;
    const KeptSets kept = example.sets.view();
    const std::vector<AttentionPeak> peaks{{1, 0, 2}};
    set_cause(row, {example.run, kept, example.evidence, peaks, 4});
    CHECK(row.cause == "kept");
}

TEST_CASE("few slots: a ranking over all heads of a layer keeps the lost tokens") {
    Example example;
    // Two entries are kept for their scores. Together, the heads rank 9 and 8 of head 0 first.
    example.run.scores = {9, 1, 8, 3, 4, none, 1, 7, 2, 3, 4, none};
    CHECK(example.row().cause == "few slots");
    example.run.scores_f64.assign(example.run.scores.begin(), example.run.scores.end());
    example.run.scores.clear();
    CHECK(example.row().cause == "few slots");
    example.evidence = {2, 4};  // token 4 is not kept either way
    example.peaks = {{1, 0, 0}, {1, 0, 0}};
    CHECK(example.row().cause == "ranked low");
    CHECK(example.row().cause_gap == 2);
    CHECK(example.row().cause_head == 0);
}

TEST_CASE("entries that are kept in spite of low scores do not add slots") {
    Example example;
    // Token 5 is kept although its score is lowest, so only the two best entries of both heads are ranked.
    example.run.scores = {9, 1, 6, 3, 4, 0, 1, 7, 2, 3, 4, 0};
    CHECK(example.row().cause == "ranked low");
}

TEST_CASE("ranked low: how many entries the head lacks for the token that is hardest to keep") {
    Example example;
    example.run.scores = {9, 5, 2, 5, 4, none, 1, 9, 3, 3, 4, none};
    example.evidence = {2, 3};
    example.peaks = {{1, 0, 1}, {1, 0, 0}};
    // Token 2 comes after 4 in head 1, and token 3 after 1 in head 0.
    const trace::ResultRow row = example.row();
    CHECK(row.cause == "ranked low");
    CHECK(row.cause_layer == 0);
    CHECK(row.cause_head == 1);
    CHECK(row.cause_gap == 2);
    example.evidence = {3};
    example.peaks = {{1, 0, 0}};
    CHECK(example.row().cause_head == 0);
    CHECK(example.row().cause_gap == 2);
    example.run.scores[3] = none;
    CHECK(example.row().cause == "undetermined");
}

TEST_CASE("kept and undetermined answers") {
    Example example;
    example.evidence = {0, 1, 5};
    example.peaks = {{0, 0, 0}, {0, 0, 1}, {0, 0, 0}};
    CHECK(example.row().cause == "kept");
    example.evidence.clear();
    example.peaks.clear();
    CHECK(example.row().cause == "undetermined");
    trace::ResultRow row;
    row.cause = "ranked low";
    row.cause_gap = 3;
    forget_cause(row);
    CHECK(row.cause.empty());
    CHECK(std::isnan(row.cause_gap));
}

TEST_CASE("an answer is wrong because of the compression if only the full run is right") {
    trace::ResultRow full, run;
    full.policy = full_policy;
    full.score = 1;
    run.policy = "snapkv";
    run.score = 0.25;
    CHECK(is_wrong_only_compressed(run, full));
    CHECK_FALSE(is_wrong_only_compressed(full, full));
    run.score = 0.5;
    CHECK_FALSE(is_wrong_only_compressed(run, full));
    run.score = NAN;
    CHECK_FALSE(is_wrong_only_compressed(run, full));
    run.score = 0;
    full.score = 0.4;
    CHECK_FALSE(is_wrong_only_compressed(run, full));
    full.score = 1;
    run.status = "failed: no memory";
    CHECK_FALSE(is_wrong_only_compressed(run, full));
}

TEST_CASE("wrong-answers: counts by policy, budget and cause", "[results]") {
    const trace::sample::TemporaryFolder folder;
    std::vector<trace::ResultRow> rows;
    const auto add = [&](int sample, const std::string& policy, int64_t budget, double score,
                         const std::string& cause = "", double gap = NAN) {
        trace::ResultRow row;
        row.sample_id = "sample-" + std::to_string(sample);
        row.policy = policy;
        row.parameters_json = "{}";
        row.budget = budget;
        row.length = 100;
        row.metric = "contains";
        row.answers_json = "[]";
        row.depth = NAN;
        row.score = score;
        row.cause = cause;
        row.cause_gap = gap;
        rows.push_back(row);
    };
    for (int sample = 0; sample < 4; ++sample) {
        add(sample, "full", 100, sample < 3);
        add(sample, "snapkv", 24, 0,
            sample < 2    ? "ranked low"
            : sample == 2 ? "few slots"
                          : "",
            sample < 2 ? 3 + sample : NAN);
        add(sample, "snapkv", 16, sample == 0, sample == 1 ? "a later version's" : sample == 2 ? "kept" : "");
        add(sample, "h2o", 16, 1);
    }
    rows.back().status = "failed: no memory";
    trace::Writer writer(folder / "t.h5", trace::sample::recipe);
    writer.write_model(trace::sample::model());
    writer.write_results("niah", 0, rows);
    writer.finish();
    const trace::Reader reader(folder / "t.h5");
    CHECK(format_table(table_of(reader, "wrong-answers", {}), TableFormat::csv) ==
          "policy,budget,n,wrong,little_attention,few_slots,ranked_low,kept,undetermined,median_gap\n"
          "snapkv,16,3,2,0,0,0,1,1,\n"
          "snapkv,24,3,3,0,1,2,0,0,3.5\n"
          "h2o,16,3,0,0,0,0,0,0,\n");
    // The other half of the samples hides the question.
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].model = "model";
        rows[i].question_seen = i < rows.size() / 2 ? 1 : 0;
    }
    trace::Writer in_both_ways(folder / "both.h5", trace::sample::recipe);
    in_both_ways.write_model(trace::sample::model());
    in_both_ways.write_results("niah", 0, rows);
    in_both_ways.finish();
    CHECK_THAT(format_table(table_of(trace::Reader(folder / "both.h5"), "wrong-answers", {}), TableFormat::csv),
               Contains("\n\"snapkv, question seen\",24,2,2,0,0,2,") &&
                   Contains("\n\"snapkv, question hidden\",24,1,1,0,1,0,"));
    FigureOptions options;
    options.runs = {"snapkv @ 24"};
    const Figure figure = made(reader, "wrong-answers", options);
    const auto& map = layer_of<HeatMap>(figure, 0);
    CHECK(map.values == std::vector<float>{0, 1, 2, 0, 0});
    options.runs = {"full"};
    CHECK_THROWS_WITH(made(reader, "wrong-answers", options), Contains("only the full run"));
}

TEST_CASE("a cause in words") {
    trace::ResultRow row;
    CHECK(cause_in_words(row).empty());
    row.cause = cause::ranked_low;
    row.cause_layer = 17;
    row.cause_head = 2;
    row.cause_gap = 23;
    CHECK(cause_in_words(row) ==
          "KV head 2 of layer 17 dropped a token of the answer. With 23 more entries, it would have kept it.");
    row.cause_token = 101;
    row.cause_gap = 1;
    CHECK_THAT(cause_in_words(row), Contains("dropped token 101 of the answer. With 1 more entry, it"));
}
