// Time of decisions from a live prefill of the default model. Hidden; run with kvscope_engine_tests "[bench]".
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>

#include "engine/model/device_selection.h"
#include "tests/engine/experiment_on_disk.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

constexpr int n_tokens = 4096;
constexpr int n_repetitions = 9;

/// Prints the median and the maximum time of selections in milliseconds, each with another parameter value.
void measure(const engine::PrefillObservations& live, const std::string& policy,
             const std::vector<std::string>& changes) {
    std::vector<double> times;
    for (int i = 0; i < n_repetitions; ++i) {
        const auto& change = changes[static_cast<size_t>(i) % changes.size()];
        const auto text =
            change.empty() ? policy : policy + (policy.find(':') == std::string::npos ? ":" : ",") + change;
        const auto spec = policies::parse_policy(text);
        const auto start = std::chrono::steady_clock::now();
        const auto selections = live.select(spec, 512 + i, 0);
        times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
        CHECK_FALSE(selections.empty());
    }
    std::sort(times.begin(), times.end());
    const auto first = changes[0].substr(0, changes[0].find('='));
    std::printf("%-40s %-8s fastest %6.1f median %6.1f slowest %6.1f ms\n", policy.c_str(),
                first.empty() ? "budget" : first.c_str(), times.front(), times[times.size() / 2], times.back());
}

}  // namespace

TEST_CASE("selections of a live prefill at 4,096 tokens", "[.bench]") {
    engine::SilentProgress progress;
    const auto dtype = engine::dtype_from_name("auto");
    const auto model = engine::Model::open(KVSCOPE_DEFAULT_MODEL, dtype, progress);
    const TemporaryFolder folder;
    auto options = options_of(1, false);
    options.keep_prefill = true;
    Session session(folder, "t.h5", model, {prompt_of_ids(some_ids(model, n_tokens))}, {plan("full", "100%")}, options);
    session.experiment.run(session.prompts);
    const auto live = session.experiment.take_prefill();
    std::vector<std::string> lambdas, windows;
    for (int i = 0; i < n_repetitions; ++i) {
        lambdas.push_back("lambda=0." + std::to_string(10 + 4 * i));
        windows.push_back("window=" + std::to_string(8 + 3 * i));
    }
    const std::vector<std::string> poolings{"pooling=avg", "pooling=none", "pooling=max"};
    for (const auto& definition : policies::definitions()) {
        const policies::ParameterValues values(definition.parameters);
        measure(*live, definition.name, {""});
        if (!values.has("lambda")) continue;
        measure(*live, definition.name, lambdas);
        measure(*live, definition.name, windows);
        measure(*live, definition.name, poolings);
        measure(*live, definition.name + ":granularity=query_head", lambdas);
    }
}
