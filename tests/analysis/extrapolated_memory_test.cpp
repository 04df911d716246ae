#include "analysis/runs/extrapolated_memory.h"

#include <catch2/catch.hpp>

#include "analysis/runs/cost_table.h"
#include "tests/analysis/policy_trace.h"
#include "tests/analysis/sample_figures.h"

namespace kvscope::analysis {
namespace {

trace::RunAttributes run_of(const std::string& policy, int64_t budget) {
    trace::RunAttributes run;
    run.policy = policy;
    run.budget = budget;
    return run;
}

const CacheShape& known(const std::string& name) {
    for (const CacheShape& shape : known_cache_shapes())
        if (shape.name == name) return shape;
    throw std::out_of_range(name);
}

}  // namespace

TEST_CASE("memory at another length: a token of Llama-3.1-8B takes 128 KiB, of Llama-2-7B 512 KiB") {
    CHECK(known("Llama-3.1-8B").bytes_per_token() == 131'072);
    CHECK(known("Llama-2-7B").bytes_per_token() == 524'288);
    CHECK(known("SmolLM2-135M").bytes_per_token() == 2 * 30 * 3 * 64 * 2);
    const MemoryAt at{131'072, known("Llama-3.1-8B"), BudgetsAt::entries};
    CHECK(at.full_bytes() == 16.0 * 1024 * 1024 * 1024);
}

TEST_CASE("memory at another length: entries stay, shares grow, and bytes stay a share of the text") {
    const CacheShape shape{"m", 2, 1, 4, 2};  // 32 bytes per token
    MemoryAt at{1000, shape, BudgetsAt::entries};
    const auto snapkv = run_of("snapkv", 20);
    CHECK(estimate_cache_bytes(at, snapkv, 0.2, 100) == 20 * 32);
    CHECK(estimate_cache_bytes(at, snapkv, 0.25, 100) ==
          25 * 32);  // the run holds more than its budget, also at this length
    at.budgets = BudgetsAt::shares;
    CHECK(estimate_cache_bytes(at, snapkv, 0.2, 100) == 200 * 32);
    at.budgets = BudgetsAt::entries;
    CHECK(estimate_cache_bytes(at, run_of("full", 100), 1, 100) == 1000 * 32);
    auto think = run_of("think", 75);
    think.budget_of = trace::schema::run::budget_of_bytes;
    CHECK(estimate_cache_bytes(at, think, 0.75, 100) == 750 * 32);
    auto share = run_of("snapkv", 20);
    share.requested_budget = "0.2";
    CHECK(estimate_cache_bytes(at, share, 0.2, 100) == 200 * 32);
    // Rounding of a share for a short prompt does not affect a long one.
    auto rounded = run_of("snapkv", 20);
    rounded.requested_budget = "0.3";
    CHECK(estimate_cache_bytes(at, rounded, 20.0 / 68, 68) == 300 * 32);
    rounded.given_label = "my favourite";
    CHECK(estimate_cache_bytes(at, rounded, 20.0 / 68, 68) == 300 * 32);
    // Layers that keep everything regardless of the budget do not scale with it.
    CHECK(estimate_cache_bytes(at, rounded, 0.6, 68) == Approx(600 * 32));
    // A budget above the prompt kept all tokens, but keeps no more than the budget of a longer prompt.
    CHECK(estimate_cache_bytes(at, run_of("snapkv", 300), 1, 100) == 300 * 32);
    CHECK(estimate_cache_bytes(at, run_of("snapkv", 5000), 1, 100) == 1000 * 32);
}

TEST_CASE("memory at another length: the trace's recipe says which budgets are shares") {
    const test::PolicyTrace stored({{"full", 60}, {"h2o", 12}, {"h2o", 12}},
                                   R"({"runs": [{"budget": "1.0"}, {"budget": "0.2"}, {"budget": "12"}]})");
    const trace::Reader reader = stored.reader();
    const MemoryAt at{1000, {"m", 2, 1, 4, 2}, BudgetsAt::entries};
    CHECK(estimate_cache_bytes(at, reader.run(0, 1), 0.2, 60) == 200 * 32);
    CHECK(estimate_cache_bytes(at, reader.run(0, 2), 0.2, 60) == 12 * 32);
}

TEST_CASE("memory at another length: data that is stored once does not grow with the text") {
    const CacheShape shape{"m", 2, 1, 4, 2};
    const MemoryAt at{1000, shape, BudgetsAt::entries, shape};
    auto palu = run_of("palu", 50);
    palu.budget_of = trace::schema::run::budget_of_bytes;
    palu.budget_fraction = 0.5;
    palu.parameters_json = R"({"group_heads": 1, "whitening": true})";
    // Two of four directions: for 100 tokens 2 x 100 x 2 bytes and 2 x 4 f32 numbers, compared with 4 x 100 x 2 bytes.
    CHECK(estimate_cache_bytes(at, palu, 432.0 / 800, 100) == Approx(2016.0 / 4000 * 1000 * 32));
    auto think = run_of("think", 75);  // 20 keys stay whole for any length
    think.budget_of = trace::schema::run::budget_of_bytes;
    think.budget_fraction = 0.75;
    think.parameters_json = R"({"ratio": 0.5, "recent": 20})";
    CHECK(estimate_cache_bytes(at, think, 0.8, 100) == Approx(0.755 * 1000 * 32));
    auto echo = run_of("echokv", 50);  // the file that sets its ratio does not exist
    echo.budget_of = trace::schema::run::budget_of_bytes;
    echo.budget_fraction = 0.5;
    echo.parameters_json = R"({"maps": "/nowhere/maps.safetensors", "sinks": 4, "recent": 16})";
    CHECK(estimate_cache_bytes(at, echo, 0.6, 100) == Approx(0.51 * 1000 * 32));
    auto unknown = run_of("of another program", 50);
    unknown.budget_of = trace::schema::run::budget_of_bytes;
    CHECK(estimate_cache_bytes(at, unknown, 0.5, 100) == 500 * 32);
}

TEST_CASE("memory in another model: a query-head run has one row per query head of that model") {
    const CacheShape measured{"m", 2, 1, 4, 2, 3};  // three query heads share a KV head
    const CacheShape alone{"n", 2, 1, 4, 2, 1}, eight{"o", 2, 1, 4, 2, 8};
    auto run = run_of("snapkv", 20);
    run.granularity = trace::schema::run::granularity_query_head;
    const double share = 3 * 0.2;  // each query head keeps 20 of 100 tokens
    CHECK(estimate_cache_bytes({1000, measured, BudgetsAt::entries, measured}, run, share, 100) == Approx(60 * 32));
    CHECK(estimate_cache_bytes({1000, alone, BudgetsAt::entries, measured}, run, share, 100) == Approx(20 * 32));
    CHECK(estimate_cache_bytes({1000, eight, BudgetsAt::entries, measured}, run, share, 100) == Approx(160 * 32));
    CHECK(estimate_cache_bytes({1000, alone, BudgetsAt::shares, measured}, run, share, 100) == Approx(200 * 32));
    CHECK(estimate_cache_bytes({10, measured, BudgetsAt::entries, measured}, run, share, 100) == Approx(3 * 10 * 32));
    run.requested_budget = "20%";
    CHECK(estimate_cache_bytes({1000, alone, BudgetsAt::entries, measured}, run, share, 100) == Approx(200 * 32));
    for (const CacheShape& shape : known_cache_shapes()) CHECK(shape.n_heads % shape.n_kv_heads == 0);
    // 128 entries of the default model, whose three query heads share a KV head, take 67 MB in a model without sharing.
    run.requested_budget.clear();
    run.budget = 128;
    const MemoryAt in_llama{131'072, known("Llama-2-7B"), BudgetsAt::entries, known("SmolLM2-135M")};
    CHECK(estimate_cache_bytes(in_llama, run, 3 * 128.0 / 710, 710) == Approx(67'108'864));
}

TEST_CASE("memory in another model: a given rank stays, whatever the size of the other model's heads") {
    const CacheShape measured{"m", 8, 1, 16, 2, 1};
    auto run = run_of("commonkv", 50);
    run.budget_of = trace::schema::run::budget_of_bytes;
    run.budget_fraction = 0.5;
    run.parameters_json = R"({"layer_step": 4, "rank": 8, "sinks": 0, "recent": 0, "unlike": 0.0, "scope": "model"})";
    // Two groups of four layers store 8 numbers per token: 16 of 2 x 8 x 16 numbers.
    const double share = 16.0 / 256;
    CHECK(estimate_cache_bytes({1000, measured, BudgetsAt::entries, measured}, run, share, 100) ==
          Approx(1000 * 16 * 2));
    const CacheShape wide{"w", 8, 4, 16, 2, 4};  // four times the numbers per token, and the same latents
    CHECK(estimate_cache_bytes({1000, wide, BudgetsAt::entries, measured}, run, share, 100) == Approx(1000 * 16 * 2));
    const CacheShape deep{"d", 16, 1, 16, 2, 1};  // four groups
    CHECK(estimate_cache_bytes({1000, deep, BudgetsAt::entries, measured}, run, share, 100) == Approx(1000 * 32 * 2));
}

TEST_CASE("memory at another length: two columns after the budget, empty for failed runs") {
    const test::SampleTrace sample;
    const trace::Reader& reader = sample.reader();
    Table table = cost_table(reader, 0);
    const auto share = std::find_if(table.columns.begin(), table.columns.end(),
                                    [](const Column& column) { return column.name == "bytes_share"; });
    Table damaged = table;  // a cache of zero bytes
    damaged.rows[1].cells.at(static_cast<size_t>(share - table.columns.begin())) = 0.0;
    add_memory_columns(damaged, reader.runs(0), 48, {480, cache_shape(reader.model()), BudgetsAt::entries});
    for (size_t i = 0; i < damaged.columns.size(); ++i)
        if (damaged.columns[i].name == "compression_at")
            CHECK(std::holds_alternative<std::monostate>(damaged.rows[1].cells[i]));
    const size_t n_columns = table.columns.size();
    const MemoryAt at{480, cache_shape(reader.model()), BudgetsAt::entries};
    add_memory_columns(table, reader.runs(0), reader.prompt(0).visible_tokens(), at);
    REQUIRE(table.columns.size() == n_columns + 2);
    size_t place = 0;
    while (table.columns[place].name != "bytes_at") ++place;
    CHECK(table.columns[place - 1].name == "budget");
    size_t compression = 0;
    while (table.columns[compression].name != "compression") ++compression;
    CHECK(table.columns[place + 1].name == "compression_at");
    CHECK(table.columns[place].title == "At 480");
    CHECK(std::get<int64_t>(table.rows[0].cells[place]) == 10 * 3 * 2 * 48 * 8 * 2 * 4);
    CHECK(std::get<double>(table.rows[0].cells[place + 1]) == 1);
    bool is_any_empty = false;
    for (size_t i = 0; i < table.rows.size(); ++i) {
        const Row& row = table.rows[i];
        REQUIRE(row.cells.size() == table.columns.size());
        const bool has_share = std::holds_alternative<double>(row.cells[compression]);
        CHECK(std::holds_alternative<int64_t>(row.cells[place]) == has_share);
        is_any_empty = is_any_empty || !has_share;
        // 480 tokens are ten prompts: a budget of entries saves ten times as much, a budget of bytes saves the same
        // share.
        const double of_think = (0.75 + 0.25 * 32 / 48) / (0.75 + 0.25 * 32 / 480);
        const double times = row.control ? 1 : reader.run(0, static_cast<int>(i)).budget_of ? of_think : 10;
        if (has_share)
            CHECK(std::get<double>(row.cells[place + 1]) ==
                  Approx(times * std::get<double>(row.cells[compression])).epsilon(0.01));
    }
    CHECK(is_any_empty);
}

}  // namespace kvscope::analysis
