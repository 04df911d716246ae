#include "analysis/token_report.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "analysis/measures/token_coverage.h"
#include "tests/analysis/policy_trace.h"

using namespace kvscope::analysis;
using Catch::Matchers::Contains;
using kvscope::analysis::test::PolicyTrace;
namespace trace = kvscope::trace;

namespace {

/// Makes snapkv with given scores in one layer with one head and a window of one, and streaming-llm.
trace::Reader hand_made(const trace::sample::TemporaryFolder& folder, const std::vector<float>& scores,
                        const std::vector<uint32_t>& kept) {
    namespace sample = trace::sample;
    const sample::Options options{
        .n_layers = 1, .n_heads = 1, .n_kv_heads = 1, .n_tokens = static_cast<int64_t>(scores.size()), .window = 1};
    const auto prompt = sample::prompt(options);
    trace::RunRecord run = sample::full_run(options, prompt);
    run.policy = "snapkv";
    run.label = "snapkv:window=1";
    run.parameters_json = R"({"window": 1})";
    run.budget = static_cast<int64_t>(kept.size());
    run.scores = scores;
    run.kept_indices = kept;
    run.kept_offsets = {0, kept.size()};
    trace::Writer writer(folder / "t.h5", sample::recipe, {.force = true, .generator = "test"});
    writer.write_model(sample::model(options));
    writer.write_prompt(0, prompt);
    writer.write_run(0, 0, run);
    writer.finish();
    return trace::Reader(folder / "t.h5");
}

}  // namespace

TEST_CASE("token report: score, rank, cut-off and the border of a row, by hand", "[token-report]") {
    const trace::sample::TemporaryFolder folder;
    const float none = std::nanf("");
    const auto reader = hand_made(folder, {0.5F, 0.1F, 0.3F, 0.1F, 0.1F, none}, {0, 1, 2, 5});

    const TokenReport dropped = token_report(reader, 0, 0, 3);
    const TokenDecision& d = dropped.at(0, 0);
    CHECK_FALSE(d.kept);
    CHECK(d.candidate);
    CHECK(d.rank == 4);  // after position 1, which has the same score
    CHECK(d.n_candidates == 5);
    CHECK(d.n_candidates_kept == 3);
    CHECK(d.cut_off == Approx(0.1F));
    CHECK(d.distance() == 0.0);
    CHECK(dropped.n_kept() == 0);
    CHECK(dropped.sentence(0, 0) ==
          "dropped in layer 0, KV head 0: score 0.100 is rank 4 of 5; 3 of them are kept, the cut-off is 0.100");

    const TokenReport kept = token_report(reader, 0, 0, 0);
    CHECK(kept.at(0, 0).rank == 1);
    CHECK(kept.at(0, 0).distance() == Approx(0.4F));
    CHECK_FALSE(kept.at(0, 0).forced());
    const TokenReport window = token_report(reader, 0, 0, 5);
    CHECK(window.at(0, 0).forced());
    CHECK(window.at(0, 0).rank == 0);
    CHECK_THAT(window.sentence(0, 0), Contains("kept in layer 0") && Contains("without being ranked"));

    const Border two = find_tokens_near_cut_off(reader, 0, 0, 0, 0, 2);
    REQUIRE(two.kept.size() == 2);
    CHECK(two.kept[0].token == 2);
    CHECK(two.kept[1].token == 1);
    CHECK(two.kept[1].rank == 3);
    REQUIRE(two.dropped.size() == 2);
    CHECK(two.dropped[0].token == 3);
    CHECK(two.dropped[0].rank == 4);
    CHECK(two.dropped[1].token == 4);
    CHECK(find_tokens_near_cut_off(reader, 0, 0, 0, 0, 9).kept.size() == 3);
    CHECK_THROWS_AS(token_report(reader, 0, 0, 6), std::out_of_range);
    CHECK_THROWS_AS(find_tokens_near_cut_off(reader, 0, 0, 0, 1, 2), std::out_of_range);
}

TEST_CASE("token report: scores that differ in late digits are written with these digits", "[token-report]") {
    const trace::sample::TemporaryFolder folder;
    const auto reader = hand_made(folder, {0.25F, 0.25000003F, std::nanf("")}, {1, 2});
    const std::string sentence = token_report(reader, 0, 0, 0).sentence(0, 0);
    CHECK_THAT(sentence, Contains("score 0.25000000 ") && Contains("cut-off is 0.25000003"));
}

TEST_CASE("token report: kept candidates have the best ranks of every row", "[token-report]") {
    const PolicyTrace stored({{"snapkv:window=8", 30}, {"h2o", 30}, {"h2o:recent=20", 30}, {"aperturekv", 30}});
    const trace::Reader reader = stored.reader();
    for (int run = 0; run < reader.n_runs(0); ++run) {
        CAPTURE(reader.run(0, run).label);
        std::vector<std::set<size_t>> ranks(3 * 2);
        size_t n_kept = 0, n_forced = 0;
        for (int64_t token = 0; token < PolicyTrace::n_tokens; ++token) {
            const TokenReport report = token_report(reader, 0, run, token);
            n_kept += report.n_kept();
            for (size_t i = 0; i < report.decisions.size(); ++i) {
                const TokenDecision& d = report.decisions[i];
                n_forced += d.forced();
                if (d.candidate) {
                    CHECK(ranks[i].insert(d.rank).second);
                    CHECK(d.kept == (d.rank <= d.n_candidates_kept));
                    CHECK(ranks[i].size() <= d.n_candidates);
                }
            }
        }
        CHECK(n_kept == reader.kept(0, run)->indices.size());
        const size_t recent[] = {8, 15, 20, 8};
        CHECK(n_forced == 6 * recent[run]);
    }
}

TEST_CASE("token report: runs without scores, merged entries and failures", "[token-report]") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    const TokenReport full = token_report(reader, 0, 0, 7);
    CHECK_FALSE(full.has_scores);
    CHECK(full.n_kept() == 6);
    CHECK_THAT(full.sentence(2, 1), Contains("kept in layer 2, KV head 1") && Contains("no scores"));
    CHECK(find_tokens_near_cut_off(reader, 0, 0, 0, 0, 3).kept.empty());
    const auto kept = reader.kept(0, 4);
    const uint32_t first = kept->row(1, 0).front();
    REQUIRE(first > 0);
    CHECK_THAT(token_report(reader, 0, 4, 0).sentence(1, 0),
               Contains("merged into an entry of " + std::to_string(first + 1) + " that ends at token " +
                        std::to_string(first) + " in layer 1, KV head 0"));
    CHECK(describe_fate_in_layer(*kept, 1, 0).find("kept by 2 of 2 heads (0, 1)\nmerged into an entry of ") == 0);
    CHECK(describe_fate_in_layer(*reader.kept(0, 0), 1, 0) == "kept by 2 of 2 heads (0, 1)");
    trace::Kept capped = *kept;
    for (float& cardinality : capped.cardinality) cardinality = std::min(cardinality, 1.5F);
    CHECK_THAT(fate_text(capped.fate(1, 0, 0)),
               Contains("merged into an entry of " + std::to_string(first + 1) +
                        ", which counts as 1.50 tokens in attention, that ends at token"));
    // Every token is in an entry, so all tokens are kept.
    const TokenReport merged = token_report(reader, 0, 4, 0);
    CHECK(merged.n_kept() == 6);
    CHECK(span_report(reader, 0, 0, 0)[4].n_merging == 6);
    CHECK_THAT(span_report(reader, 0, 0, 0)[4].sentence, Contains("kept in 6 of 6 heads") &&
                                                             Contains("merged with other tokens in 6 heads, ") &&
                                                             Contains(" entries in all"));
    double entries = 0;
    for (size_t layer = 0; layer < 3; ++layer)
        for (size_t row = 0; row < 2; ++row) entries += merged.at(layer, row).entries();
    CHECK(span_report(reader, 0, 0, 0)[4].n_entries == Approx(entries));
    CHECK(entries < 6);
    CHECK(span_report(reader, 0, 0, 47)[4].n_entries == Approx(static_cast<double>(kept->indices.size())));
    CHECK_THAT(span_report(reader, 0, 0, 1)[4].sentence, Contains("all tokens kept at least in part in 6 of 6 heads"));
    CHECK_THAT(span_report(reader, 0, 5, 6)[5].sentence, Contains("kept in part and rebuilt in 6 heads"));
    CHECK_THAT(span_report(reader, 0, 45, 46)[5].sentence, Contains("kept whole in 6 of 6") && !Contains("rebuilt"));
    CHECK(model_coverage(kept_sets(*kept, 48)).count == 48);
    CHECK(model_coverage(entry_sets(*kept, 48)).count < 48);
    // think: all tokens except the last 4 are rebuilt.
    CHECK_THAT(token_report(reader, 0, 5, 7).sentence(0, 1),
               Contains("kept in part and rebuilt (relative error of this head: 25.0 % of the keys, 0.0 % of the "
                        "values) in layer 0"));
    CHECK_THAT(token_report(reader, 0, 5, 47).sentence(0, 1), Contains("kept in layer 0, KV head 1"));
    CHECK_THROWS_AS(token_report(reader, 0, 6, 0), NothingToShow);
}

TEST_CASE("span report: number of heads that keep all or any tokens of a span", "[token-report]") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    const auto reports = span_report(reader, 0, 3, 6);
    REQUIRE(reports.size() == 6);  // the failed run has no report
    CHECK(reports[0].n_keeping_all == 6);
    CHECK_THAT(
        reports[0].sentence,
        Contains("full: kept whole in 6 of 6 heads (100.0 %), in every layer; partly in 0 more heads; 4 of 4 tokens"));
    const auto kept = reader.kept(0, 2);
    size_t all = 0, any = 0;
    std::set<uint32_t> tokens;
    for (size_t layer = 0; layer < 3; ++layer) {
        for (size_t row = 0; row < 2; ++row) {
            size_t n = 0;
            for (const uint32_t token : kept->row(layer, row)) {
                if (token < 3 || token > 6) continue;
                ++n;
                tokens.insert(token);
            }
            all += n == 4;
            any += n > 0;
        }
    }
    CHECK(reports[2].n_keeping_all == all);
    CHECK(reports[2].n_keeping_any == any);
    CHECK(reports[2].n_tokens_kept == tokens.size());

    // The sentence names the layers that keep the whole span, or else the head that keeps most of it.
    bool was_whole = false, was_in_part = false;
    for (int64_t last = 1; last < 48; ++last) {
        for (const SpanReport& report : span_report(reader, 0, 0, last)) {
            const auto of_run = reader.kept(0, report.run);
            const auto n_of = [&](size_t layer, size_t row) {
                const auto all_kept = of_run->held(layer, row);
                return static_cast<size_t>(std::count_if(all_kept.begin(), all_kept.end(), [&](uint32_t token) {
                    return token <= static_cast<uint32_t>(last);
                }));
            };
            size_t most = 0;
            std::vector<size_t> whole;
            for (size_t layer = 0; layer < 3; ++layer) {
                for (size_t row = 0; row < of_run->n_rows; ++row) {
                    most = std::max(most, n_of(layer, row));
                    if (n_of(layer, row) == report.n_tokens && (whole.empty() || whole.back() != layer))
                        whole.push_back(layer);
                }
            }
            INFO(report.sentence);
            CHECK(report.layers_keeping_all == whole);
            CHECK(report.most.n_tokens == most);
            if (most > 0) CHECK(n_of(report.most.layer, report.most.row) == most);
            const std::string place = "the largest part in layer " + std::to_string(report.most.layer) + ", ";
            CHECK((report.sentence.find(place) != std::string::npos) == (whole.empty() && most > 0));
            if (whole.size() == 1)
                CHECK_THAT(report.sentence, Contains("in layer " + std::to_string(whole.front()) + "; partly"));
            was_whole = was_whole || !whole.empty();
            was_in_part = was_in_part || (whole.empty() && most > 0);
        }
    }
    CHECK(was_whole);
    CHECK(was_in_part);
    CHECK_THROWS_AS(span_report(reader, 0, 6, 3), std::out_of_range);
    CHECK_THROWS_AS(span_report(reader, 0, 0, 48), std::out_of_range);
}
