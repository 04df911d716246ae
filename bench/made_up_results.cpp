#include "made_up_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/full_policy.h"
#include "common/sha256.h"
#include "policies/registry/registry.h"
#include "random.h"

namespace kvscope::bench {

namespace {

constexpr const char* policy_names[] = {"snapkv", "ada-snapkv", "pyramidkv",     "h2o",    "ada-pyramidkv",
                                        "k-vec",  "aperturekv", "streaming-llm", "random", "dapq"};
constexpr std::int64_t length = 4096;
constexpr std::size_t least_budget = 32;

trace::ResultRow row_of_sample(std::size_t sample) {
    trace::ResultRow row;
    row.sample_id = fmt::format("made-up-{}-{}", length, sample);
    row.subset = fmt::format("part-{}", sample % 8);
    row.prompt_hash = sha256_of(fmt::format("prompt {}", sample));
    row.sample_hash = sha256_of(fmt::format("sample {}", sample));
    row.context_hash = sha256_of(fmt::format("context {}", sample));
    row.length = length;
    row.depth = static_cast<double>(sample % 11) / 10;
    row.answers_json = fmt::format("[\"{}\"]", 100000 + sample);
    row.metric = "contains";
    row.scored_as = "kvscope";
    row.model = "made up, no model";
    row.dtype = "bf16";
    row.device = "cpu";
    row.instructions = "avx512_bf16";
    row.commit = std::string(40, 'a');
    row.question_seen = 1;
    return row;
}

}  // namespace

std::vector<trace::ResultRow> made_up_results(std::size_t n_samples, std::size_t n_runs, std::uint64_t seed) {
    struct Setting {
        policies::PolicySpec spec;
        std::string parameters_json;
        std::int64_t budget;
    };
    std::vector<Setting> settings;
    for (std::size_t run = 0; run < n_runs; ++run) {
        const std::size_t n_policies = std::size(policy_names);
        policies::PolicySpec spec = policies::parse_policy(policy_names[run % n_policies]);
        std::string parameters = spec.values.to_json();
        settings.push_back({std::move(spec), std::move(parameters),
                            static_cast<std::int64_t>(least_budget << std::min<std::size_t>(6, run / n_policies))});
    }
    std::vector<trace::ResultRow> rows;
    rows.reserve(n_samples * (n_runs + 1));
    for (std::size_t sample = 0; sample < n_samples; ++sample) {
        Random random(seed, sample);
        const trace::ResultRow of_sample = row_of_sample(sample);
        for (std::size_t run = 0; run <= n_runs; ++run) {
            trace::ResultRow& row = rows.emplace_back(of_sample);
            const bool is_full = run == 0;
            row.policy = is_full ? std::string(full_policy) : settings[run - 1].spec.definition->name;
            row.parameters_json = is_full ? "{}" : settings[run - 1].parameters_json;
            row.budget = is_full ? length : settings[run - 1].budget;
            row.budget_fraction = static_cast<double>(row.budget) / static_cast<double>(length);
            row.requested_budget = is_full ? "" : fmt::format("{}", row.budget);
            row.kept_share = row.budget_fraction;
            const float luck = random.uniform();
            const double chance = is_full ? 0.97 : 0.2 + 0.7 * row.budget_fraction;
            row.score = static_cast<double>(luck) < chance ? 1 : 0;
            row.prediction = fmt::format("The number in the text is {}.", 100000 + (luck < 0.5F ? sample : run));
            row.seconds = row.prefill_s = 1 + static_cast<double>(luck);
            row.bytes = row.bytes_predicted = static_cast<double>(row.budget) * 1e4;
            row.kl = is_full ? 0 : static_cast<double>(luck);
            row.coverage = row.attention_kept = row.budget_fraction;
        }
    }
    return rows;
}

}  // namespace kvscope::bench
