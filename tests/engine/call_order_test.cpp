// The order of calls that policies/api/policy.h promises to a policy's author.
#include <catch2/catch.hpp>

#include "tests/engine/experiment_on_disk.h"
#include "tests/policies/throwaway_policies.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using namespace kvscope::policies;

namespace {

using Calls = std::vector<std::string>;
Calls calls;  // of the policy under test

void add(const std::string& function, int layer) { calls.push_back(function + " " + std::to_string(layer)); }

class Records : public throwaway::KeepFirst {
 public:
    explicit Records(const ParameterValues&) {}
    void begin(const RunContext& context) override {
        calls.emplace_back("begin");
        KeepFirst::begin(context);
    }
    Needs needs() const override {
        calls.emplace_back("needs");
        return KeepFirst::needs();
    }
    void observe(LayerObservations& observations) override { add("observe", observations.layer); }
    Selection select(LayerObservations& observations) override {
        add("select", observations.layer);
        return KeepFirst::select(observations);
    }
};

class Evicts : public Records,
               public Gathers,
               public DecidesInOrder,
               public PreparesWeights,
               public AppendsTokens,
               public MergesValues,
               public EvictsWhileDecoding {
 public:
    using Records::Records;
    AppendedTokens appended(const RunContext& context) const override {
        calls.emplace_back("appended");
        return {{context.token_ids[0]}, {context.n_tokens}};
    }
    bool prepares() const override { return true; }
    void prepare(int layer) override { add("prepare", layer); }
    int decided_at(int layer) const override {
        add("decided_at", layer);
        return std::min(layer | 1, context_.shape.n_layers - 1);
    }
    void gather(LayerObservations& observations) override { add("gather", observations.layer); }
    void merge_values(LayerObservations& observations, const Selection&, int row, std::span<float>) override {
        if (row == 0) add("merge_values", observations.layer);
    }
    StepEvictions step(const StepObservations& observations) override {
        add("step", observations.layer);
        return {};
    }
};

class Drafts : public Records, public Gathers, public LooksAhead {
 public:
    using Records::Records;
    int64_t lookahead() const override { return 2; }
    void gather(LayerObservations& observations) override { add("gather", observations.layer); }
    Selection draft(LayerObservations& observations) override {
        add("draft", observations.layer);
        return KeepFirst::select(observations);  // NOLINT(bugprone-parent-virtual-call): Records adds a call
    }
};

class Filters : public Records, public FiltersPrompt {
 public:
    using Records::Records;
    PromptFilter filter(const RunContext&) const override {
        calls.emplace_back("filter");
        return FilterLayer{1};
    }
};

class Stores : public Records, public StoresWhileDecoding {
 public:
    using Records::Records;
    bool stores_parts() const override { return false; }
    bool stores_while_decoding() const override { return true; }
    std::optional<WholeTokens> whole_tokens(int layer) const override {
        add("whole_tokens", layer);
        return WholeTokens{8, 0};
    }
    StoredLayer store(const ReducedTokens& tokens) override {
        add("store", tokens.layer);
        StoredLayer stored;
        const int d = context_.shape.head_dim;
        for (int row = 0; row < context_.shape.n_kv_heads; ++row) {
            StoredEntries entries{.positions = {tokens.positions.begin(), tokens.positions.end()},
                                  .keys = {{{.width = d}}},
                                  .values = {{{.width = d}}}};
            for (size_t i = 0; i < tokens.positions.size(); ++i)
                for (int c = 0; c < d; ++c) {
                    const auto at = static_cast<int64_t>(i);
                    entries.keys.parts[0].numbers.push_back(throwaway::element(tokens.keys, row, at, c, d));
                    entries.values.parts[0].numbers.push_back(throwaway::element(tokens.values, row, at, c, d));
                }
            stored.rows.push_back({.stored = {std::move(entries)}});
        }
        return stored;
    }
};

template <int64_t chunk, int64_t every>
class Merging : public ReadsThroughOwnCache {
 public:
    explicit Merging(const ParameterValues&) {}
    void begin(const RunContext& context) override {
        calls.emplace_back("begin");
        context_ = context;
    }
    OwnCacheReading reading(const RunContext&) const override {
        calls.emplace_back("reading");
        return {.chunk = chunk};
    }
    DecodeMerging decode_merging() const override { return {every, context_.budget, context_.n_tokens}; }
    Merges merge(const MergeObservations& seen, int64_t n_merges) override {
        add("merge", seen.layer);
        Merges merges;
        for (uint32_t i = 0; i < n_merges; ++i) merges.first.push_back(2 * i);
        merges.keys.assign(merges.first.size() * static_cast<size_t>(seen.shape.n_kv_heads * seen.shape.head_dim),
                           0.5f);
        return merges;
    }

 private:
    RunContext context_;
};

/// Runs the policy with 8 entries on a prompt of 12 tokens, and returns its calls.
template <class P>
Calls calls_of(int64_t n_new) {
    const auto& model = tiny_model();
    const Definition definition = throwaway::definition<P>("records");
    const std::vector<engine::RunPlan> plans{plan("full", "100%"),
                                             {parse_parameters(definition, ""), parse_budget("8")}};
    const std::vector<engine::Prompt> prompts{prompt_of_ids(some_ids(model, 12))};
    engine::SilentProgress progress;
    engine::ExperimentOptions options = options_of(n_new);
    options.ignore_eos = true;
    engine::Experiment experiment(model, plans, options, progress);
    experiment.on_run = [](int, int, const trace::RunRecord& record) {
        CAPTURE(record.message);
        CHECK(record.status == "complete");
    };
    calls.clear();
    experiment.run(prompts);
    return calls;
}

/// Appends the calls for each layer. '#' stands for the layer.
void append_for_layers(Calls& expected, const Calls& of_layer) {
    for (int layer = 0; layer < tiny_model().transformer().shape().n_layers; ++layer)
        for (std::string call : of_layer) expected.push_back(call.replace(call.find('#'), 1, std::to_string(layer)));
}

/// Checks that the calls begin with the expected ones. Each token of an answer then repeats the calls `of_token`.
void check_calls(const Calls& found, const Calls& expected, const Calls& of_token = {}) {
    Calls token, all = expected;
    append_for_layers(token, of_token);
    do all.insert(all.end(), token.begin(), token.end());
    while (!token.empty() && all.size() < found.size());
    CHECK(found == all);
}

}  // namespace

TEST_CASE("a policy that selects is called layer by layer, then at each decoded token") {
    const int n_layers = tiny_model().transformer().shape().n_layers;
    Calls expected{"begin", "needs", "appended"};
    append_for_layers(expected, {"prepare #"});
    for (int layer = 0; layer < n_layers; ++layer) {
        const std::string number = std::to_string(layer);
        expected.push_back("observe " + number);
        expected.push_back("decided_at " + number);
        if (layer % 2 == 0 && layer + 1 < n_layers) continue;
        for (int decided = layer - layer % 2; decided <= layer; ++decided)
            for (const char* call : {"gather ", "select ", "merge_values "})
                expected.push_back(call + std::to_string(decided));
    }
    check_calls(calls_of<Evicts>(4), expected, {"step #"});
}

TEST_CASE("a policy that looks ahead drafts every layer before it selects") {
    Calls expected{"begin", "needs"};
    append_for_layers(expected, {"gather #", "draft #"});
    append_for_layers(expected, {"observe #", "gather #", "select #"});
    check_calls(calls_of<Drafts>(2), expected);
}

TEST_CASE("a policy that filters the prompt selects once") {
    check_calls(calls_of<Filters>(2), {"begin", "needs", "filter", "select 1"});
}

TEST_CASE("a policy that stores decoded tokens receives them after each layer's attention") {
    Calls expected{"begin", "needs"};
    append_for_layers(expected, {"observe #", "select #"});
    check_calls(calls_of<Stores>(4), expected, {"whole_tokens #", "store #"});
}

TEST_CASE("a policy that reads through its own cache only merges") {
    check_calls(calls_of<Merging<4, 1>>(4), {"begin", "reading"}, {"merge #"});
}

TEST_CASE("a policy merges before a chunk if the cache holds more entries than the budget, and after the prompt") {
    Calls expected{"begin", "reading"};
    append_for_layers(expected, {"merge #", "merge #"});  // before the last chunk and after it, from 10 to 8 entries
    CHECK(calls_of<Merging<2, 0>>(4) == expected);
}

TEST_CASE("a policy cannot read chunks of no tokens") {
    CHECK_THROWS_WITH((calls_of<Merging<0, 0>>(4)), Catch::Contains("in chunks of 0 tokens: choose at least 1"));
}
