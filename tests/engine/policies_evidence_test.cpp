#include <catch2/catch.hpp>
#include <cstdio>

#include "policies/registry/reselect.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/kept_difference.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

void compare_kept_sets(const std::string& name) {
    const auto reference = golden("policies_reference/" + name + ".json");
    const auto ids = golden("engine/prompt_ids.json")["prompts"][name]["ids"].get<std::vector<int32_t>>();
    const auto& model = default_model_f32();
    std::vector<engine::RunPlan> plans;
    for (const auto& one : reference["cases"]) {
        plans.push_back(plan(one["policy"].get<std::string>(), std::to_string(one["budget"].get<int>())));
        policies::ParameterValues& values = plans.back().spec.values;
        if (values.has("importance")) values.set("importance", KVSCOPE_TEST_DATA "/" + values.text("importance"));
    }
    const TemporaryFolder folder;
    const auto reader = run_experiment(folder, "t.h5", model, {prompt_of_ids(ids)}, plans, options_of(1, false));
    REQUIRE(reader.n_runs(0) == static_cast<int>(plans.size()) + 1);

    for (size_t i = 0; i < plans.size(); ++i) {
        const int run = static_cast<int>(i) + 1;
        CAPTURE(reader.run(0, run).label, reader.run(0, run).message);
        REQUIRE(reader.run(0, run).status == "complete");
        const auto kept = reader.kept(0, run);
        const auto difference = difference_of(*kept, reference["cases"][i]);
        std::printf("%-6s %-48s %6zu entries, %zu differ within rounding, %zu beyond\n", name.c_str(),
                    plans[i].label().c_str(), difference.entries, difference.differing - difference.unexplained,
                    difference.unexplained);
        CHECK(difference.unexplained == 0);
        CHECK(static_cast<double>(difference.differing) <= 0.001 * static_cast<double>(difference.entries));

        // The kept sets follow from the recorded scores.
        const auto shape = model.transformer().shape();
        std::vector<policies::LayerScores> scores(static_cast<size_t>(shape.n_layers));
        const auto record = reader.run_record(0, run);
        const size_t per_layer = kept->n_rows * ids.size();
        for (size_t layer = 0; layer < scores.size(); ++layer) {
            scores[layer].granularity =
                record.granularity == "kv_head" ? policies::Granularity::kv_head : policies::Granularity::query_head;
            const auto at = static_cast<std::ptrdiff_t>(layer * per_layer);
            const auto n = static_cast<std::ptrdiff_t>(per_layer);
            if (!record.scores.empty())
                scores[layer].scores.assign(record.scores.begin() + at, record.scores.begin() + at + n);
            if (!record.scores_f64.empty())
                scores[layer].scores_f64.assign(record.scores_f64.begin() + at, record.scores_f64.begin() + at + n);
        }
        policies::RunContext context;
        context.shape = shape;
        context.n_tokens = static_cast<int64_t>(ids.size());
        context.budget = record.budget;
        context.token_ids = ids;
        const auto again =
            policies::reselect(*plans[i].spec.definition, plans[i].spec.values, context, std::move(scores));
        for (size_t layer = 0; layer < again.size(); ++layer) {
            for (size_t row = 0; row < again[layer].rows.size(); ++row) {
                const auto found = kept->row(layer, row);
                REQUIRE(std::equal(found.begin(), found.end(), again[layer].rows[row].begin(),
                                   again[layer].rows[row].end()));
            }
        }
    }
}

}  // namespace

// Reference: kept sets in NumPy, f64 (scripts/golden/kept_sets.py).
TEST_CASE("kept sets on the short prompt equal the reference's", "[arithmetic][default_model]") {
    compare_kept_sets("short");
}

TEST_CASE("kept sets on the demo prompt equal the reference's", "[arithmetic][default_model]") {
    compare_kept_sets("demo");
}
