#include "analysis/what_if/what_if.h"

#include <catch2/catch.hpp>

#include "analysis/drawing/figure_definition.h"
#include "analysis/measures/attention_kept.h"
#include "analysis/token_report.h"
#include "tests/analysis/policy_trace.h"
#include "tests/trace/whole_records.h"

using namespace kvscope::analysis;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using kvscope::analysis::test::PolicyTrace;
namespace policies = kvscope::policies;
namespace trace = kvscope::trace;

namespace {

constexpr int64_t entry_budget = 40;

/// Every policy of the build that selects by scores, some with other parameters than the defaults.
std::vector<test::PolicyRun> all_runs() {
    return {{"full", PolicyTrace::n_tokens},
            {"streaming-llm", entry_budget},
            {"h2o", entry_budget},
            {"h2o:granularity=query_head,recent=5", entry_budget},
            {"snapkv:window=8", entry_budget},
            {"pyramidkv:window=8,beta=4", entry_budget},
            {"ada-snapkv:window=8", entry_budget},
            {"ada-snapkv:window=8,normalize=on", entry_budget},
            {"ada-pyramidkv:window=8,granularity=query_head", entry_budget},
            {"aperturekv", entry_budget},
            {"aperturekv:granularity=query_head,sharpen=none", entry_budget}};
}

std::string name_of(const trace::Reader& reader, int run) { return reader.run(0, run).label; }

policies::ParameterValues with(const WhatIf& what_if, const char* name, const char* value) {
    policies::ParameterValues values = what_if.recorded();
    values.set(name, value);
    return values;
}

int64_t kept_in_layer(const trace::RunRecord& record, size_t layer, size_t rows) {
    return static_cast<int64_t>(record.kept_offsets[(layer + 1) * rows] - record.kept_offsets[layer * rows]);
}

/// The run that the policy selects from the queries at another budget or with other parameters.
trace::RunRecord decided(const std::string& policy, int64_t budget) {
    return PolicyTrace({{policy, budget}}).reader().run_record(0, 0);
}

}  // namespace

TEST_CASE("what-if: for every policy, it is known whether another budget needs a new run", "[what-if]") {
    for (const policies::Definition& definition : policies::definitions()) {
        CAPTURE(definition.name);
        const bool has_maps = definition.name == "echokv" || definition.name == "echokv-hybrid";
        const policies::PolicySpec spec =
            policies::parse_policy(definition.name + (has_maps ? ":maps=of-another-machine.safetensors" : ""));
        CHECK_NOTHROW(obstacle_to_what_if(spec));
    }
    CHECK_THAT(obstacle_to_what_if(policies::parse_policy("kvslimmer")), Contains("through its own cache"));
    CHECK_THAT(obstacle_to_what_if(policies::parse_policy("asymkv")), Contains("through its own cache"));
    CHECK(obstacle_to_what_if(policies::parse_policy("dapq:content=fixed-phrase,offset=-32")).empty());
    CHECK(obstacle_to_what_if(policies::parse_policy("dapq")).empty());
}

TEST_CASE("what-if: the recorded values and budget reproduce the recorded run", "[what-if]") {
    const PolicyTrace stored(all_runs());
    const trace::Reader reader = stored.reader();
    for (int run = 0; run < reader.n_runs(0); ++run) {
        CAPTURE(name_of(reader, run));
        const WhatIf what_if(reader, 0, run);
        const trace::RunRecord recorded = reader.run_record(0, run);
        const trace::RunRecord again = what_if(what_if.recorded(), what_if.recorded_budget());
        CHECK(again.kept_offsets == recorded.kept_offsets);
        CHECK(again.kept_indices == recorded.kept_indices);
        CHECK(again.head_jsd == recorded.head_jsd);
        CHECK(again.scores.size() == recorded.scores.size());
        CHECK(again.granularity == recorded.granularity);
        CHECK(again.parameters_json == recorded.parameters_json);
        CHECK(again.status == "complete");
        CHECK_THAT(again.label, Contains("what-if"));
        CHECK(again.step_kl.empty());
        CHECK(again.output_ids.empty());

        const KeptSets kept{3, reader.n_rows(0, run), PolicyTrace::n_tokens, again.kept_offsets, again.kept_indices};
        const trace::PromptRecord prompt = trace::prompt_record(reader, 0);
        CHECK(again.attention_kept == attention_kept(prompt.window_attention, 4, kept));
        uint64_t bytes = 0;
        for (const uint64_t of_layer : again.cache_bytes_predicted) bytes += of_layer;
        CHECK(bytes == again.kept_indices.size() * 2 * 8 * sizeof(float));
        CHECK(again.head_bytes.size() == 3 * reader.n_rows(0, run));
    }
}

TEST_CASE("what-if: another budget or parameter gives the policy's own selection from the queries", "[what-if]") {
    struct Change {
        const char* recorded;
        const char* parameter;
        const char* value;
        int64_t budget;
        const char* expected;
    };
    const std::vector<Change> changes = {
        {"snapkv:window=8", nullptr, nullptr, 17, "snapkv:window=8"},
        {"snapkv:window=8", nullptr, nullptr, 1000, "snapkv:window=8"},
        {"h2o", nullptr, nullptr, 13, "h2o"},
        {"h2o", "recent", "3", 20, "h2o:recent=3"},
        {"streaming-llm", "sinks", "9", 20, "streaming-llm:sinks=9"},
        {"pyramidkv:window=8", "beta", "3", 20, "pyramidkv:window=8,beta=3"},
        {"ada-snapkv:window=8", "alpha", "0.8", 20, "ada-snapkv:window=8,alpha=0.8"},
        {"ada-pyramidkv:window=8,beta=5", "schedule", "reference", 25,
         "ada-pyramidkv:window=8,beta=5,schedule=reference"},
        {"aperturekv", nullptr, nullptr, 20, "aperturekv"},
        {"aperturekv", "raba", "off", 20, "aperturekv:raba=off"},
        {"aperturekv:sharpen=none", "divergence", "kl", 20, "aperturekv:sharpen=none,divergence=kl"},
        {"aperturekv", "alpha", "0.5", 20, "aperturekv:alpha=0.5"},
        {"k-vec:window=8,cross_layer=off", nullptr, nullptr, 13, "k-vec:window=8,cross_layer=off"},
        {"lacache", "span", "1", 20, "lacache:span=1"},
        {"longcache", "chunk", "5", 20, "longcache:chunk=5"},
        {"longcache:sinks=2", "recent", "7", 13, "longcache:sinks=2,recent=7"},
        {"random", "recent", "6", 13, "random:recent=6"},
    };
    for (const Change& change : changes) {
        CAPTURE(change.expected, change.budget);
        const PolicyTrace stored({{change.recorded, entry_budget}});
        const WhatIf what_if(stored.reader(), 0, 0);
        const auto values = change.parameter ? with(what_if, change.parameter, change.value) : what_if.recorded();
        CHECK(what_if.needs_prefill(values, change.budget).empty());
        const trace::RunRecord record = what_if(values, change.budget);
        const trace::RunRecord expected = decided(change.expected, change.budget);
        CHECK(record.kept_offsets == expected.kept_offsets);
        CHECK(record.kept_indices == expected.kept_indices);
        CHECK(record.head_jsd == expected.head_jsd);
        CHECK(record.parameters_json == expected.parameters_json);
        CHECK(record.budget == change.budget);
    }
}

TEST_CASE("what-if: budgets are exact", "[what-if]") {
    const PolicyTrace stored(
        {{"ada-snapkv:window=8", entry_budget}, {"aperturekv", entry_budget}, {"h2o", entry_budget}});
    const trace::Reader reader = stored.reader();
    for (int run = 0; run < reader.n_runs(0); ++run) {
        const WhatIf what_if(reader, 0, run);
        for (const int64_t budget : {10, 33, 59}) {
            const trace::RunRecord record = what_if(what_if.recorded(), budget);
            for (size_t layer = 0; layer < 3; ++layer) CHECK(kept_in_layer(record, layer, 2) == 2 * budget);
        }
    }
}

TEST_CASE("what-if: parameters that change the scores need a prefill", "[what-if]") {
    const PolicyTrace stored(
        {{"ada-snapkv:window=8", entry_budget}, {"ada-snapkv:window=8,normalize=on", entry_budget}});
    const trace::Reader reader = stored.reader();
    const WhatIf plain(reader, 0, 0);
    CHECK_THAT(plain.needs_prefill(with(plain, "kernel", "5")), Equals(std::vector<std::string>{"kernel"}));
    CHECK(plain.needs_prefill(with(plain, "positions", "cache"), 11).empty());
    CHECK_THROWS_WITH(plain(with(plain, "lambda", "0.3"), 20), Contains("lambda") && Contains("prefill"));
    CHECK_THROWS_AS(plain(plain.recorded(), 8), policies::BudgetError);

    // Here the scores depend on the budget, which weighs the heads.
    const WhatIf weighed(reader, 0, 1);
    CHECK(weighed.needs_prefill(weighed.recorded(), entry_budget).empty());
    CHECK_THAT(weighed.needs_prefill(with(weighed, "alpha", "0.5"), 20),
               Equals(std::vector<std::string>{"alpha", "budget"}));
    CHECK_THROWS_AS(weighed(weighed.recorded(), 20), policies::ParameterError);
}

TEST_CASE("what-if: k-vec's scores depend on the budget if layers use the kept sets of other layers", "[what-if]") {
    const PolicyTrace stored({{"k-vec:window=8", entry_budget}, {"k-vec:window=8,cross_layer=off", entry_budget}});
    const trace::Reader reader = stored.reader();
    const WhatIf whole(reader, 0, 0);
    CHECK(whole.needs_prefill(whole.recorded(), entry_budget).empty());
    CHECK_THAT(whole.needs_prefill(whole.recorded(), 11), Equals(std::vector<std::string>{"budget"}));
    const WhatIf heads(reader, 0, 1);
    CHECK(heads.needs_prefill(heads.recorded(), 11).empty());
    CHECK_THAT(heads.needs_prefill(with(heads, "delta", "1")), Equals(std::vector<std::string>{"delta"}));
}

TEST_CASE("what-if: a run that cannot be recomputed gives the reason", "[what-if]") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    CHECK_THROWS_WITH(WhatIf(reader, 0, 6), Contains("failed") && Contains("above the window"));
    CHECK_THROWS_WITH(WhatIf(reader, 0, 4), Contains("kvslimmer"));
    CHECK_THROWS_WITH(WhatIf(reader, 0, 3), Contains("do not reproduce its kept entries"));
    CHECK_THROWS_AS(WhatIf(reader, 0, 3), NothingToShow);
    CHECK_THROWS_AS(WhatIf(reader, 1, 0), FigureError);
    CHECK_NOTHROW(WhatIf(reader, 0, 1));
}

TEST_CASE("what-if: a reader accepts the record as another run, and figures show it", "[what-if]") {
    const PolicyTrace stored({{"full", PolicyTrace::n_tokens}, {"snapkv:window=8", entry_budget}});
    const trace::Reader reader = stored.reader();
    const WhatIf what_if(reader, 0, 1);
    const trace::Reader live = reader.with_run(0, what_if(what_if.recorded(), 20));
    REQUIRE(live.n_runs(0) == 3);
    for (const char* name : {"retention", "coverage", "budgets", "difference", "cost", "step-kl"}) {
        CAPTURE(name);
        CHECK_NOTHROW(figure_definition(name).make(live, {}));
        CHECK_NOTHROW(figure_definition(name).numbers(live, {}));
    }
    const TokenReport report = token_report(live, 0, 2, 0);
    CHECK(report.has_scores);
    CHECK(report.at(0, 0).n_candidates_kept == 12);
}

TEST_CASE("what-if: a record made from given selections is the same", "[what-if]") {
    const PolicyTrace stored({{"snapkv:window=8", entry_budget}});
    const trace::Reader reader = stored.reader();
    const WhatIf what_if(reader, 0, 0);
    const trace::RunRecord expected = what_if(what_if.recorded(), 20);
    std::vector<policies::Selection> selections(3);
    for (size_t layer = 0; layer < 3; ++layer) {
        for (size_t row = 0; row < 2; ++row) {
            const auto* first = expected.kept_indices.data();
            selections[layer].rows.emplace_back(first + expected.kept_offsets[layer * 2 + row],
                                                first + expected.kept_offsets[layer * 2 + row + 1]);
        }
    }
    const policies::PolicySpec spec{&what_if.definition(), what_if.recorded()};
    const trace::RunRecord record = what_if_record(reader, 0, spec, 20, 0.25, selections, {});
    CHECK(record.kept_indices == expected.kept_indices);
    CHECK(record.head_bytes == expected.head_bytes);
    CHECK(record.label == expected.label);
    CHECK(record.attention_kept.empty());
    selections.pop_back();
    CHECK_THROWS_AS(what_if_record(reader, 0, spec, 20, 0.25, selections, {}), std::invalid_argument);
}

TEST_CASE("what-if: a policy that keeps every token takes a share of bytes as its budget", "[what-if]") {
    const PolicyTrace stored({{"think:recent=4", 48}, {"think:ratio=0.25", 60}});
    const trace::Reader reader = stored.reader();
    const WhatIf what_if(reader, 0, 0);
    CHECK(what_if.needs_prefill(with(what_if, "recent", "9"), 40).empty());
    CHECK(what_if.needs_prefill(with(what_if, "ratio", "0.5"), 40).empty());
    CHECK_THAT(what_if.needs_prefill(with(what_if, "window", "8")), Equals(std::vector<std::string>{"window"}));
    for (const int64_t budget : {36, 40, 48, 57, 60}) {
        CAPTURE(budget);
        const trace::RunRecord found = what_if(what_if.recorded(), budget);
        const trace::RunRecord expected = decided("think:recent=4", budget);
        CHECK(found.channels_kept == expected.channels_kept);
        CHECK(found.kept_indices.size() == 3 * 2 * 60);
        CHECK(found.budget_of == "bytes");
        CHECK(found.merged_token_entry.empty());
        CHECK(found.stored_entries == expected.stored_entries);
        for (size_t layer = 0; layer < 3; ++layer) {
            const auto d = static_cast<size_t>(reader.model().head_dim);
            const auto dropped = (2 * static_cast<size_t>(60 - budget) * d + 55) / 56;
            if (dropped > 0) CHECK(expected.stored_key_width[layer * 2] == static_cast<float>(d - dropped));
            const size_t channels = dropped == 0 ? 0 : d - dropped;
            CHECK(found.cache_bytes_predicted[layer] == 2 * (60 * 2 * d * 4 - 56 * dropped * 4 + channels * 2));
        }
        // A reader accepts a record that was made in memory as a run.
        const trace::Reader both = reader.with_run(0, found);
        CHECK(both.kept(0, 2)->fate(0, 0, 0).kind ==
              (expected.stored_entries.empty() ? trace::TokenFate::Kind::whole : trace::TokenFate::Kind::rebuilt));
    }
    CHECK_THROWS_AS(what_if(what_if.recorded(), 30), policies::BudgetError);
    CHECK(what_if(with(what_if, "ratio", "0.5"), 30).budget_fraction == 0.75);
    // If the ratio is given, the budget has no effect.
    const WhatIf fixed(reader, 0, 1);
    CHECK(fixed(fixed.recorded(), 35).channels_kept == reader.run_record(0, 1).channels_kept);
}
