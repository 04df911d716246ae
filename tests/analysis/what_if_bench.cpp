// Measures a what-if in the dimensions of the default model on 4,096 tokens. Run: kvscope_analysis_tests "[bench]".
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "analysis/what_if/what_if.h"
#include "policies/registry/reselect.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope;
using analysis::WhatIf;

namespace {

constexpr int n_repetitions = 9;

const trace::sample::Options trace_size{.n_layers = 30,
                                        .n_heads = 9,
                                        .n_kv_heads = 3,
                                        .head_dim = 64,
                                        .n_tokens = 4096,
                                        .window = 32,
                                        .vocab_size = 64,
                                        .n_steps = 2};

trace::RunRecord run_of(const policies::PolicySpec& spec, int64_t budget) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(0.0F, 1.0F);
    const bool query_heads = spec.values.has("granularity") && spec.values.text("granularity") == "query_head";
    const bool f64 = spec.definition->name == "aperturekv";
    const auto n_rows = static_cast<size_t>(query_heads ? trace_size.n_heads : trace_size.n_kv_heads);
    const auto n_tokens = static_cast<size_t>(trace_size.n_tokens);
    std::vector<policies::LayerScores> layers(static_cast<size_t>(trace_size.n_layers));
    for (policies::LayerScores& layer : layers) {
        layer.granularity = query_heads ? policies::Granularity::query_head : policies::Granularity::kv_head;
        std::vector<float> scores;
        std::vector<double> scores_f64;
        for (size_t row = 0; row < n_rows; ++row) {
            std::vector<double> weights;
            double sum = 0;
            for (size_t i = 0; i < n_tokens; ++i) sum += weights.emplace_back(std::pow(uniform(random), 8.0F) + 1e-4F);
            for (const double weight : weights) {
                f64 ? scores_f64.push_back(weight / sum) : scores.push_back(static_cast<float>(weight));
            }
        }
        layer.scores = std::move(scores);
        layer.scores_f64 = std::move(scores_f64);
    }
    policies::RunContext context;
    context.shape = {static_cast<int>(trace_size.n_layers), static_cast<int>(trace_size.n_heads),
                     static_cast<int>(trace_size.n_kv_heads), static_cast<int>(trace_size.head_dim)};
    context.n_tokens = trace_size.n_tokens;
    context.budget = budget;
    trace::RunRecord record;
    record.policy = spec.definition->name;
    record.label = spec.label();
    record.parameters_json = spec.values.to_json();
    record.budget = budget;
    record.budget_fraction = static_cast<double>(budget) / static_cast<double>(trace_size.n_tokens);
    record.granularity = query_heads ? "query_head" : "kv_head";
    record.kept_offsets = {0};
    for (const auto& selection : policies::reselect(*spec.definition, spec.values, context, layers)) {
        for (const auto& row : selection.rows) {
            record.kept_indices.insert(record.kept_indices.end(), row.begin(), row.end());
            record.kept_offsets.push_back(record.kept_indices.size());
        }
        record.scores.insert(record.scores.end(), selection.scores.begin(), selection.scores.end());
        record.scores_f64.insert(record.scores_f64.end(), selection.scores_f64.begin(), selection.scores_f64.end());
        record.head_jsd.insert(record.head_jsd.end(), selection.head_jsd.begin(), selection.head_jsd.end());
    }
    const auto n_layers = static_cast<size_t>(trace_size.n_layers);
    record.attention_kept.assign(n_layers * static_cast<size_t>(trace_size.n_heads), 0.5F);
    record.output_error = record.attention_kept;
    record.head_bytes.assign(n_layers * n_rows, 0);
    record.cache_bytes.assign(n_layers, 0);
    record.cache_bytes_predicted.assign(n_layers, 0);
    record.step_kl.assign(2, 0.0F);
    record.step_agreement.assign(2, 1);
    record.output_ids.assign(2, 1);
    return record;
}

double milliseconds(std::chrono::steady_clock::time_point since) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

TEST_CASE("what-if at 30 layers, 9 heads and 4,096 tokens", "[.bench]") {
    const trace::sample::TemporaryFolder folder;
    const auto prompt = trace::sample::prompt(trace_size);
    std::vector<std::string> texts;
    for (const auto& definition : policies::definitions()) {
        texts.push_back(definition.name);
        const policies::ParameterValues values(definition.parameters);
        if (values.has("granularity")) texts.push_back(definition.name + ":granularity=query_head");
    }
    texts.emplace_back("aperturekv:divergence=kl,granularity=query_head");
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.force = true, .generator = "bench"});
        writer.write_model(trace::sample::model(trace_size));
        writer.write_prompt(0, prompt);
        for (size_t j = 0; j < texts.size(); ++j) {
            writer.write_run(0, static_cast<int>(j), run_of(policies::parse_policy(texts[j]), 512));
        }
        writer.finish();
    }
    const trace::Reader reader(folder / "t.h5");
    for (int j = 0; j < reader.n_runs(0); ++j) {
        const auto begin = std::chrono::steady_clock::now();
        const WhatIf what_if(reader, 0, j);
        const double load = milliseconds(begin);
        std::vector<double> times;
        for (int i = 0; i < n_repetitions; ++i) {
            const auto start = std::chrono::steady_clock::now();
            const auto record = what_if(what_if.recorded(), 256 + 64 * i);
            times.push_back(milliseconds(start));
            CHECK_FALSE(record.kept_indices.empty());
        }
        std::sort(times.begin(), times.end());
        std::printf("%-55s reading %6.1f ms, what-if median %5.1f ms, slowest %5.1f ms\n",
                    reader.run(0, j).label.c_str(), load, times[n_repetitions / 2], times.back());
    }
}
