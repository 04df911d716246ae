#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/threads/team.h"
#include "policies/registry/registry.h"
#include "policies/registry/reselect.h"
#include "tests/policies/importance_file.h"
#include "tests/policies/random_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

/// Settings other than the defaults, applied to every policy that has the parameter, so that new policies are tested
/// with them. "window=5" allows small prompts.
const std::vector<std::string> easy_and_hard_settings{
    "window=1",
    "window=5,lambda=0.45",
    "pooling=avg,kernel=3",
    "pooling=none",
    "pooling=max,kernel=101",
    "reduce=max",
    "reduce=sum",
    "granularity=query_head",
    "positions=cache",
    "alpha=0",
    "alpha=1",
    "alpha=0.33,normalize=on",
    "beta=1",
    "beta=1000",
    "sinks=0",
    "sinks=9",
    "recent=0",
    "recent=9",
    "rolling=on",
    "qd=off",
    "raba=off",
    "sharpen=none",
    "sharpen=temperature,tau=0.001",
    "divergence=kl",
    "divergence=cross-entropy",
    "extended_window=1",
    "delta=1",
    "delta=99,criterion=entropy",
    "cross_head=off",
    "cross_layer=off",
    "lambda=10",
    "beta=0",
    "beta=1.005",
    "temperature=0",
    "temperature=5",
    "span=1",
    "span=2,overlap=1",
    "span=3,overlap=100",
    "chunk=1",
    "chunk=5",
    "chunk=1000",
    "shared=on",
};

/// Sets "name=value,name=value". Returns false if the policy does not have the parameter or refuses the value.
bool takes(PolicySpec& spec, const std::string& setting) {
    for (size_t at = 0; at < setting.size();) {
        const size_t comma = std::min(setting.find(',', at), setting.size());
        const std::string piece = setting.substr(at, comma - at);
        const size_t equals = piece.find('=');
        if (!spec.values.has(piece.substr(0, equals))) return false;
        try {
            spec.values.set(piece.substr(0, equals), piece.substr(equals + 1));
        } catch (const ParameterError&) {
            return false;
        }
        at = comma + 1;
    }
    return true;
}

/// A policy with its defaults, except a window of 8.
PolicySpec base_spec(const Definition& definition, const ModelShape& shape) {
    PolicySpec spec = usable(definition, shape);
    if (spec.values.has("window")) spec.values.set("window", "8");
    return spec;
}

/// Policies that select entries. Those that keep every token, or merge, have separate tests.
std::vector<std::reference_wrapper<const Definition>> selecting_policies() {
    std::vector<std::reference_wrapper<const Definition>> selecting;
    for (const Definition& definition : definitions()) {
        if (definition.budget_of == BudgetOf::entries &&
            !definition.create(ParameterValues(definition.parameters)).as<ReadsThroughOwnCache>())
            selecting.emplace_back(definition);
    }
    return selecting;
}

/// Each policy with its base settings, and with every setting that applies to it.
std::vector<PolicySpec> all_specs(const ModelShape& shape) {
    std::vector<PolicySpec> specs;
    for (const Definition& definition : selecting_policies()) {
        const PolicySpec base = base_spec(definition, shape);
        specs.push_back(base);
        for (const std::string& setting : easy_and_hard_settings) {
            PolicySpec spec = base;
            if (takes(spec, setting)) specs.push_back(spec);
        }
    }
    return specs;
}

bool has_scores(const Selection& selection) { return selection.scores.size() + selection.scores_f64.size() > 0; }

/// Whether the policy ranks entries when it drops some, i.e. positions alone do not decide.
bool ranks(const Definition& definition) {
    Cache cache = random_cache({1, 4, 2, 8}, 50, 9);
    return has_scores(select_all(base_spec(definition, cache.layers[0].shape).create(), cache, 20).front());
}

/// Number of entries that a policy keeps in each row regardless of scores.
int64_t protected_entries(const PolicySpec& spec, const ModelShape& shape) {
    int64_t entries = spec.definition->name == "lacache" ? shape.n_layers : 0;
    for (const char* name : {"window", "sinks", "recent"}) {
        if (spec.values.has(name)) entries += spec.values.automatic_integer(name).value_or(0);
    }
    return entries;
}

bool moves_between_layers(const PolicySpec& spec) {
    return spec.values.has("schedule") || spec.values.has("importance");
}

int64_t forced_tail(const PolicySpec& spec, int64_t budget) {
    if (spec.values.has("window")) return spec.values.integer("window");
    if (!spec.values.has("recent")) return 0;
    const int64_t sinks = spec.values.has("sinks") ? spec.values.automatic_integer("sinks").value_or(0) : 0;
    return spec.values.automatic_integer("recent").value_or((budget - sinks) / 2);
}

void check_layer(const PolicySpec& spec, const Selection& selection, const RunContext& context) {
    const int64_t n = context.n_tokens;
    const int rows =
        selection.granularity == Granularity::query_head ? context.shape.n_heads : context.shape.n_kv_heads;
    REQUIRE(static_cast<int>(selection.rows.size()) == rows);
    for (const auto& row : selection.rows) {
        REQUIRE(std::adjacent_find(row.begin(), row.end(), std::greater_equal<>()) == row.end());
        REQUIRE((row.empty() || row.back() < n));
        const std::set<uint32_t> kept(row.begin(), row.end());
        for (int64_t i = std::max<int64_t>(0, n - forced_tail(spec, context.budget)); i < n; ++i) {
            REQUIRE(kept.count(static_cast<uint32_t>(i)) == 1);
        }
        if (spec.values.has("sinks")) {
            for (int64_t i = 0; i < std::min(n, spec.values.automatic_integer("sinks").value_or(0)); ++i) {
                REQUIRE(kept.count(static_cast<uint32_t>(i)) == 1);
            }
        }
    }
    REQUIRE((selection.scores.empty() || selection.scores_f64.empty()));
    if (!selection.scores.empty()) REQUIRE(static_cast<int64_t>(selection.scores.size()) == rows * n);
    if (!selection.scores_f64.empty()) REQUIRE(static_cast<int64_t>(selection.scores_f64.size()) == rows * n);
    if (!selection.head_jsd.empty()) {
        REQUIRE(static_cast<int>(selection.head_jsd.size()) == rows * rows);
        for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < rows; ++j) {
                const float jsd = selection.head_jsd[static_cast<size_t>(i * rows + j)];
                REQUIRE(jsd == selection.head_jsd[static_cast<size_t>(j * rows + i)]);
                REQUIRE((jsd >= 0.0f && jsd <= static_cast<float>(std::numbers::ln2)));
                REQUIRE((i != j || jsd == 0.0f));
            }
        }
    }
}

int64_t kept_in(const Selection& selection) {
    int64_t kept = 0;
    for (const auto& row : selection.rows) kept += static_cast<int64_t>(row.size());
    return kept;
}

bool same_bits(const Selection& a, const Selection& b) {
    auto same = [](const auto& x, const auto& y) {
        return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                          [](auto u, auto v) { return u == v || (std::isnan(u) && std::isnan(v)); });
    };
    return a.rows == b.rows && a.granularity == b.granularity && same(a.scores, b.scores) &&
           same(a.scores_f64, b.scores_f64) && a.head_jsd == b.head_jsd;
}

struct Size {
    ModelShape shape;
    int64_t n_tokens;
};

const std::vector<Size> cache_sizes{{{5, 6, 3, 8}, 90}, {{1, 2, 1, 8}, 40}, {{2, 4, 4, 8}, 33}, {{3, 8, 2, 16}, 150}};

}  // namespace

TEST_CASE("a decision does not depend on which policies used the observations before", "[properties]") {
    for (size_t s = 0; s < cache_sizes.size(); ++s) {
        const auto& [shape, n] = cache_sizes[s];
        Cache shared = random_cache(shape, n, 70 + static_cast<unsigned>(s));
        Cache alone = random_cache(shape, n, 70 + static_cast<unsigned>(s));
        for (const PolicySpec& spec : all_specs(shape)) {
            for (int64_t budget : {int64_t{10}, int64_t{24}, n - 3}) {
                if (budget <= protected_entries(spec, shape)) continue;
                CAPTURE(spec.label(), s, budget);
                alone.tell(64);
                const auto expected = select_all(spec.create(), alone, budget);
                for (int time = 0; time < 2; ++time) {
                    const auto found = select_all(spec.create(), shared, budget);
                    REQUIRE(std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same_bits));
                }
            }
        }
    }
}

TEST_CASE("data gathered for one run after the other suffice to select in parallel", "[properties]") {
    struct Run {
        std::string label;
        CreatedPolicy policy;
        std::vector<Selection> expected, found;
    };
    size_t n_runs = 0;
    for (size_t s = 0; s < cache_sizes.size(); ++s) {
        const auto& [shape, n] = cache_sizes[s];
        Cache cache = random_cache(shape, n, 90 + static_cast<unsigned>(s));
        std::vector<Run> runs;
        for (const PolicySpec& spec : all_specs(shape)) {
            for (int64_t budget : {int64_t{10}, int64_t{24}, n - 3}) {
                auto policy = spec.create();
                if (budget <= protected_entries(spec, shape) || !policy.as<Gathers>()) continue;
                policy->begin(cache.context(budget));
                runs.push_back({spec.label(), std::move(policy), select_all(spec.create(), cache, budget), {}});
            }
        }
        cache.observe(64);
        for (const auto& observations : cache.observations) {
            for (Run& run : runs) {
                run.policy.as<Gathers>()->gather(*observations);
                run.found.emplace_back();
            }
            observations->keys.data = nullptr;  // no device is needed any more
            std::atomic<size_t> next = 0;
            kvscope::kernels::run_on_thread_team(7, [&](int) {
                for (size_t i = next++; i < runs.size(); i = next++)
                    runs[i].found.back() = runs[i].policy->select(*observations);
            });
        }
        for (const Run& run : runs) {
            CAPTURE(run.label, s);
            CHECK(std::equal(run.found.begin(), run.found.end(), run.expected.begin(), run.expected.end(), same_bits));
        }
        n_runs += runs.size();
    }
    CHECK(n_runs > 100);
}

TEST_CASE("an announced ranking exists from the second announcement on", "[properties]") {
    const Scores<float> once{3, 1, 2, 4}, twice{3, 1, 2, 4};
    once.announce_ranking(2);
    CHECK(!once.ranking(2));
    CHECK(!once.ranking(2));
    twice.announce_ranking(2);
    CHECK(!twice.known_ranking(2));
    twice.announce_ranking(2);
    REQUIRE(twice.known_ranking(2));
    CHECK(twice.ranking(2) == twice.known_ranking(2));
    Scores<float>().announce_ranking(2);
    twice.announce_ranking(3);
    CHECK(!twice.known_ranking(3));
}

TEST_CASE("several policies and budgets share the same scores", "[properties]") {
    Cache cache = random_cache({2, 4, 2, 8}, 90, 71);
    const auto values = [&](const char* policy, int64_t budget) {
        return select_all(base_spec(*find_definition(policy), {2, 4, 2, 8}).create(), cache, budget)[1].scores.values();
    };
    const auto first = values("snapkv", 20);
    REQUIRE(first);
    for (const char* policy : {"snapkv", "pyramidkv", "ada-snapkv", "ada-pyramidkv"})
        CHECK(values(policy, 40) == first);
    CHECK(values("h2o", 20) == values("h2o", 50));
    CHECK(values("dapq", 20) == values("dapq", 50));
    CHECK(values("longcache", 20) == values("longcache", 50));
    CHECK(values("k-vec", 20) != values("k-vec", 50));
    cache.observations[1]->keep_latest(0);
    CHECK(values("snapkv", 20) != first);
}

TEST_CASE("budgets are exact, rows ascend, protected entries stay, and scores reproduce the kept sets",
          "[properties]") {
    for (size_t s = 0; s < cache_sizes.size(); ++s) {
        const auto& [shape, n] = cache_sizes[s];
        Cache cache = random_cache(shape, n, 100 + static_cast<unsigned>(s));
        for (const PolicySpec& spec : all_specs(shape)) {
            for (int64_t budget : {int64_t{10}, int64_t{24}, n - 3}) {
                CAPTURE(spec.label(), s, budget);
                if (protected_entries(spec, shape) >= budget) {
                    CHECK_THROWS_AS(spec.create()->begin(cache.context(budget)), BudgetError);
                    continue;
                }
                const auto selections = select_all(spec.create(), cache, budget);
                const RunContext context = cache.context(budget);
                int64_t total = 0, rows = 0;
                std::vector<LayerScores> scores;
                for (const Selection& selection : selections) {
                    check_layer(spec, selection, context);
                    rows = static_cast<int64_t>(selection.rows.size());
                    const int64_t kept = kept_in(selection);
                    if (spec.definition->name == "full") {
                        REQUIRE(kept == rows * n);
                    } else if (!moves_between_layers(spec)) {
                        REQUIRE(kept == rows * budget);
                    }
                    total += kept;
                    scores.push_back({selection.granularity, selection.scores, selection.scores_f64});
                }
                if (spec.definition->name != "full") REQUIRE(total == shape.n_layers * rows * budget);
                const auto again = reselect(*spec.definition, spec.values, context, scores);
                for (size_t layer = 0; layer < again.size(); ++layer)
                    REQUIRE(same_bits(again[layer], selections[layer]));
            }
        }
    }
}

TEST_CASE("a budget of at least the prompt keeps everything and still ranks", "[properties]") {
    const ModelShape shape{4, 6, 3, 8};
    for (int64_t n : {1, 5, 8, 9, 40}) {
        Cache cache = random_cache(shape, n, 7);
        for (const PolicySpec& spec : all_specs(shape)) {
            const bool rolls = spec.values.has("rolling") && spec.values.boolean("rolling");
            const bool ranked = ranks(*spec.definition);
            for (int64_t budget : {n, n + 1, n + 1000}) {
                CAPTURE(spec.label(), n, budget);
                const CreatedPolicy policy = spec.create();
                if (rolls && budget < 20) continue;  // its protected entries must fit during decoding
                for (const Selection& selection : select_all(policy, cache, budget)) {
                    check_layer(spec, selection, cache.context(budget));
                    REQUIRE(kept_in(selection) == static_cast<int64_t>(selection.rows.size()) * n);
                    REQUIRE(has_scores(selection) == ranked);
                }
            }
        }
    }
}

TEST_CASE("a budget that does not exceed the protected entries is an error that names their number", "[properties]") {
    Cache cache = random_cache({2, 4, 2, 8}, 50, 9);
    const ModelShape& shape = cache.layers[0].shape;
    for (const Definition& definition : selecting_policies()) {
        for (const std::string name : {"window", "sinks", "recent"}) {
            PolicySpec spec = usable(definition, shape);
            if (!spec.values.has(name)) continue;
            for (const char* other : {"sinks", "recent"}) {
                if (spec.values.has(other)) spec.values.set(other, "0");
            }
            spec.values.set(name, "12");
            for (int64_t budget : {1, 11, 12}) {
                CAPTURE(definition.name, name, budget);
                const CreatedPolicy policy = spec.create();
                CHECK_THROWS_AS(policy->begin(cache.context(budget)), BudgetError);
                CHECK_THROWS_WITH(policy->begin(cache.context(budget)), Catch::Matchers::Contains("12"));
            }
            CHECK_NOTHROW(spec.create()->begin(cache.context(protected_entries(spec, shape) + 1)));
        }
    }
}

TEST_CASE("a score that is NaN is an error", "[properties]") {
    for (const Definition& definition : selecting_policies()) {
        if (!ranks(definition) || definition.name == "random" || definition.name == "llmlingua-2") continue;
        CAPTURE(definition.name);
        Cache cache = random_cache({1, 4, 2, 8}, 50, 9);
        const PolicySpec spec = base_spec(definition, cache.layers[0].shape);
        cache.layers[0].keys[8 * 17 + 3] = NAN;  // KV head 0, position 17
        cache.observe(32);
        CHECK_THROWS_AS(select_all(spec.create(), cache, 20), ScoreError);
        CHECK_THROWS_AS(select_all(spec.create(), cache, 50), ScoreError);
        CHECK_THROWS_WITH(select_all(spec.create(), cache, 20), Catch::Matchers::Contains("layer 0, head 0"));
    }
}

TEST_CASE("recomputing a selection refuses the wrong number of scores", "[properties]") {
    for (const Definition& definition : selecting_policies()) {
        RunContext context;
        context.shape = {2, 4, 2, 8};
        const PolicySpec spec = usable(definition, context.shape);
        context.n_tokens = 60;
        context.budget = 40;
        CAPTURE(definition.name);
        CHECK_THROWS_AS(reselect(definition, spec.values, context, std::vector<LayerScores>(1)), ScoreError);
        if (!ranks(definition)) continue;
        std::vector<LayerScores> short_scores(2);
        for (LayerScores& layer : short_scores) {
            layer.scores.assign(60, 1.0f);
            layer.scores_f64.assign(60, 1.0);
        }
        CHECK_THROWS_AS(reselect(definition, spec.values, context, short_scores), ScoreError);
    }
}

TEST_CASE("selecting policies do not depend on values or on the order of KV heads", "[properties]") {
    const ModelShape shape{2, 6, 3, 8};
    const int64_t n = 70;
    Cache cache = random_cache(shape, n, 21);
    Cache turned = cache.layers.empty() ? Cache{} : Cache{cache.layers, {}};
    const size_t q = static_cast<size_t>(2 * n * 8), k = static_cast<size_t>(n * 8);
    for (Layer& layer : turned.layers) {
        std::rotate(layer.queries.begin(), layer.queries.begin() + q, layer.queries.end());
        std::rotate(layer.keys.begin(), layer.keys.begin() + k, layer.keys.end());
        for (float& value : layer.values) value = -value;
    }
    turned.observe(64);
    for (const char* name :
         {"snapkv:window=8", "h2o", "pyramidkv:window=8", "ada-snapkv:window=8,pooling=none,alpha=0", "aperturekv",
          "aperturekv:raba=off", "k-vec:window=8,delta=1,pooling=none", "longcache:chunk=5"}) {
        CAPTURE(name);
        const PolicySpec spec = parse_policy(name);
        const auto straight = select_all(spec.create(), cache, 20);
        const auto rotated = select_all(spec.create(), turned, 20);
        for (size_t layer = 0; layer < straight.size(); ++layer) {
            for (size_t g = 0; g < 3; ++g) CHECK(rotated[layer].rows[g] == straight[layer].rows[(g + 1) % 3]);
        }
    }
}

TEST_CASE("aperturekv with lambda=0 equals qd=off", "[properties]") {
    Cache cache = random_cache({2, 6, 3, 8}, 70, 22);
    const auto off = select_all(parse_policy("aperturekv:qd=off").create(), cache, 20);
    const auto zero = select_all(parse_policy("aperturekv:lambda=0").create(), cache, 20);
    const auto on = select_all(parse_policy("aperturekv").create(), cache, 20);
    CHECK(same_bits(off[0], zero[0]));
    CHECK_FALSE(same_bits(off[0], on[0]));
}
