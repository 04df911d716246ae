// A trace whose runs are selected by the policies from given queries and keys, for tests that repeat selections.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "policies/registry/registry.h"
#include "policies/registry/storage_recorder.h"
#include "tests/policies/random_cache.h"
#include "tests/trace/sample_trace.h"
#include "trace/reader.h"

namespace kvscope::analysis::test {

struct PolicyRun {
    std::string policy;  ///< as --policy takes it
    int64_t budget = 0;
    std::vector<uint32_t> switch_steps{};  ///< steps after which the cache changes its form, from compressed
};

class PolicyTrace {
 public:
    static constexpr int64_t n_tokens = 60;
    static constexpr int window = 32;

    explicit PolicyTrace(const std::vector<PolicyRun>& runs, const std::string& recipe = trace::sample::recipe,
                         const trace::sample::Options& shape = {}) {
        namespace sample = trace::sample;
        sample::Options options = shape;
        options.n_tokens = n_tokens;
        options.window = window;
        const trace::ModelRecord model = sample::model(options);
        trace::PromptRecord prompt = sample::prompt(options);
        auto cache =
            policies::test::random_cache({static_cast<int>(model.n_layers), static_cast<int>(model.n_heads),
                                          static_cast<int>(model.n_kv_heads), static_cast<int>(model.head_dim)},
                                         n_tokens, 5);
        prompt.window_attention.clear();
        for (const auto& layer : cache.observations) {
            const auto& rows = layer->window_attention(window, 0.0F, policies::SoftmaxRange::visible);
            prompt.window_attention.insert(prompt.window_attention.end(), rows.begin(), rows.end());
        }
        trace::Writer writer(folder_ / "t.h5", recipe, {.force = true, .generator = "policy_trace.h"});
        writer.write_model(model);
        writer.write_prompt(0, prompt);
        for (size_t j = 0; j < runs.size(); ++j) {
            writer.write_run(0, static_cast<int>(j), record(cache, options, prompt, runs[j]));
        }
        writer.finish();
    }

    [[nodiscard]] std::filesystem::path path() const { return folder_ / "t.h5"; }
    [[nodiscard]] trace::Reader reader() const { return trace::Reader(path()); }

 private:
    [[nodiscard]] static trace::RunRecord record(policies::test::Cache& cache, const trace::sample::Options& options,
                                                 const trace::PromptRecord& prompt, const PolicyRun& run) {
        const policies::PolicySpec spec = policies::parse_policy(run.policy);
        trace::RunRecord record = trace::sample::full_run(options, prompt);
        record.policy = spec.definition->name;
        record.label = spec.label() + " @ " + std::to_string(run.budget);
        record.parameters_json = spec.values.to_json();
        record.budget = run.budget;
        record.budget_fraction = static_cast<double>(run.budget) / static_cast<double>(n_tokens);
        record.kept_indices.clear();
        record.kept_offsets = {0};
        if (spec.definition->budget_of == policies::BudgetOf::bytes) record.budget_of = "bytes";
        record.switch_steps = run.switch_steps;
        for (size_t i = 0; i < run.switch_steps.size(); ++i) record.switch_is_full.push_back(i % 2 == 0 ? 1 : 0);
        const policies::ModelShape& shape = cache.layers[0].shape;
        policies::StorageRecorder<trace::RunRecord> storage;
        const auto policy = spec.create();
        for (const policies::Selection& selection : policies::test::select_all(policy, cache, run.budget)) {
            const bool query_heads = selection.granularity == policies::Granularity::query_head;
            record.granularity = query_heads ? "query_head" : "kv_head";
            for (const auto& row : selection.rows) {
                record.kept_indices.insert(record.kept_indices.end(), row.begin(), row.end());
                record.kept_offsets.push_back(record.kept_indices.size());
            }
            const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
            append(record.scores, selection.scores);
            append(record.scores_f64, selection.scores_f64);
            append(record.head_jsd, selection.head_jsd);
            append(record.channel_scores, selection.channel_scores);
            if (const auto* stores = policy.as<policies::StoresParts>(); !stores || !stores->stores_parts()) continue;
            const auto layer = static_cast<int>(record.stored_entries.size()) / shape.n_kv_heads;
            storage.add_layer(
                policies::summarize_storage(spec.label(), layer, shape, n_tokens, selection, sizeof(float)), record);
        }
        storage.finish(record);
        if (record.policy == "full") {
            const auto n = static_cast<size_t>(shape.n_layers * shape.n_kv_heads * n_tokens);
            for (size_t i = 0; i < n; ++i) record.answer_attention.push_back(static_cast<float>(i * 37 % 101) / 101.0f);
        }
        record.cache_bytes_predicted.clear();
        record.cache_bytes.clear();
        record.head_bytes.assign(record.kept_offsets.size() - 1, 0);
        return record;
    }

    trace::sample::TemporaryFolder folder_;
};

}  // namespace kvscope::analysis::test
