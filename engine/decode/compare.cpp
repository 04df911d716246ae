#include "engine/decode/compare.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/decode/sampler.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/device/tensor_functions.h"
#include "kernels/index_of_largest.h"
#include "kernels/log_softmax.h"
#include "kernels/threads/parallel.h"

namespace kvscope::engine {
namespace {

// With this many rows, the speed depends on arithmetic and not on reading the weights.
constexpr int64_t rows_together = 768;

void turn_to_log_probabilities(at::Tensor& logits) {
    kernels::log_softmax({.n_rows = logits.size(0),
                          .n = logits.size(1),
                          .in = logits.const_data_ptr<float>(),
                          .out = logits.data_ptr<float>()});
}

at::Tensor log_probabilities(std::span<const float> logits) {
    const auto n = static_cast<int64_t>(logits.size());
    at::Tensor logs = at::empty({1, n}, at::kFloat);
    kernels::log_softmax({.n_rows = 1, .n = n, .in = logits.data(), .out = logs.data_ptr<float>()});
    return logs;
}

/// Returns each row's most likely token; -1 for rows that contain NaN.
std::vector<int32_t> greedy_of(const at::Tensor& rows) {
    std::vector<int32_t> tokens(static_cast<size_t>(rows.size(0)));
    const int64_t n = rows.size(1);
    const float* data = rows.const_data_ptr<float>();
    kernels::parallel_for(rows.size(0), rows.numel(), [&](int64_t i) {
        tokens[static_cast<size_t>(i)] = static_cast<int32_t>(kernels::index_of_largest(data + i * n, n));
    });
    return tokens;
}

void require_no_nan(std::span<const int32_t> greedy) {
    if (std::find(greedy.begin(), greedy.end(), -1) != greedy.end()) refuse_nan();
}

void compare_rows(const FullReference& reference, int64_t first, const at::Tensor& found, Comparison& comparison) {
    const int64_t rows = found.size(0);
    const at::Tensor expected = reference.log_probabilities.narrow(0, first, rows);
    std::vector<float> kl(static_cast<size_t>(rows));
    kernels::divergence_of_logs({.n_rows = rows,
                                 .n = found.size(1),
                                 .log_p = expected.const_data_ptr<float>(),
                                 .log_q = found.const_data_ptr<float>(),
                                 .out = kl.data()});
    const std::vector<int32_t> greedy = greedy_of(found);
    const auto expected_greedy =
        std::span<const int32_t>(reference.greedy).subspan(static_cast<size_t>(first), static_cast<size_t>(rows));
    require_no_nan(expected_greedy);
    require_no_nan(greedy);
    for (int64_t i = 0; i < rows; ++i) {
        const auto t = static_cast<size_t>(first + i);
        comparison.step_kl[t] = std::max(kl[static_cast<size_t>(i)], 0.0f);
        comparison.step_agreement[t] = expected_greedy[static_cast<size_t>(i)] == greedy[static_cast<size_t>(i)];
    }
}

struct Compared {
    Sequence sequence;
    OutputErrors errors;
    Comparison* comparison = nullptr;
};

void compare_group(const Transformer& model, const FullReference& reference, std::vector<Compared> group,
                   int64_t tokens_together, Progress& progress, int64_t& done) {
    const auto total = static_cast<int64_t>(reference.tokens.size());
    HostBuffer room;
    for (int64_t first = 0; first < total && !group.empty(); first += tokens_together) {
        progress.throw_if_stopped();
        const int64_t n = std::min(tokens_together, total - first);
        const std::vector<std::span<const int32_t>> tokens(
            group.size(),
            std::span<const int32_t>(reference.tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(n)));
        std::vector<Sequence> sequences;
        std::vector<OutputErrors> errors;
        for (auto& one : group) {
            sequences.push_back(one.sequence);
            errors.push_back(std::move(one.errors));
        }
        const at::Tensor residual =
            feed_tokens(model, sequences, tokens,
                        {.given = true, .compare = &reference.attention, .reference_first = first, .errors = errors});
        // No token follows the answer's last token, so only the attention of the last token is needed.
        const int64_t n_logits = std::min(n, total - 1 - first);
        for (size_t s = 0; s < group.size(); ++s) {
            group[s].sequence = sequences[s];
            group[s].errors = std::move(errors[s]);
            auto& comparison = *group[s].comparison;
            comparison.error = sequences[s].error;
            if (comparison.error.empty() && n_logits > 0)
                comparison.error = catch_single_run_failure([&] {
                    at::Tensor logits = model.logits(residual.narrow(0, static_cast<int64_t>(s) * n, n_logits), room);
                    turn_to_log_probabilities(logits);
                    compare_rows(reference, first + 1, logits, comparison);
                });
            progress.advance(done += n_logits);
        }
        std::erase_if(group, [](const Compared& one) { return !one.comparison->error.empty(); });
    }
    for (const auto& one : group) {
        for (const double error : one.errors) {
            if (std::isnan(error)) one.comparison->error = "its attention output contains NaN";
            one.comparison->output_error.push_back(static_cast<float>(error / static_cast<double>(total)));
        }
    }
}

}  // namespace

Comparison comparison_of_full_with_itself(const Transformer& model, const FullReference& reference) {
    const auto shape = model.shape();
    return {std::vector<float>(reference.tokens.size(), 0.0f), std::vector<uint8_t>(reference.tokens.size(), 1),
            std::vector<float>(static_cast<size_t>(shape.n_layers * shape.n_heads), 0.0f)};
}

FullReference compute_full_reference(const Transformer& model, Sequence full, std::span<const float> first_logits,
                                     std::span<const int32_t> tokens, Progress& progress) {
    const auto n = static_cast<int64_t>(tokens.size());
    const int64_t vocabulary = model.config().vocab_size;
    progress.begin("reference", n, "tokens");
    FullReference reference;
    reference.tokens.assign(tokens.begin(), tokens.end());
    reference.log_probabilities = at::empty({n, vocabulary}, at::kFloat);
    greedy_token(first_logits);  // throws if there is NaN
    reference.log_probabilities.narrow(0, 0, 1).copy_(log_probabilities(first_logits));
    reference.attention.first_position = full.position;
    std::vector<AttentionReference> blocks;
    HostBuffer room;
    const int64_t most = std::min(rows_together, model.backend().rows_alike());
    for (int64_t first = 0; first < n; first += most) {
        progress.throw_if_stopped();
        const int64_t rows = std::min(most, n - first);
        const std::span<const int32_t> block = tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(rows));
        blocks.emplace_back();
        const at::Tensor residual =
            feed_tokens(model, {&full, 1}, {&block, 1}, {.given = true, .records = {&blocks.back(), 1}, .errors = {}});
        if (full.failed()) throw RunError(full.error);
        const int64_t n_logits = std::min(rows, n - 1 - first);
        if (n_logits > 0) {
            at::Tensor logits = model.logits(residual.narrow(0, 0, n_logits), room);
            require_no_nan(greedy_of(logits));
            turn_to_log_probabilities(logits);
            reference.log_probabilities.narrow(0, first + 1, n_logits).copy_(logits);
        }
        progress.advance(first + rows);
    }
    // Comparisons also use log probabilities, which can be equal although the logits differ.
    reference.greedy = greedy_of(reference.log_probabilities);
    for (int layer = 0; layer < model.shape().n_layers; ++layer) {
        std::vector<at::Tensor> queries, outputs;
        for (const auto& block : blocks) {
            queries.push_back(block.queries[static_cast<size_t>(layer)]);
            outputs.push_back(block.outputs[static_cast<size_t>(layer)]);
        }
        reference.attention.queries.push_back(at::cat(queries));
        reference.attention.outputs.push_back(at::cat(outputs));
    }
    return reference;
}

std::vector<Comparison> compare_with_full_run(const Transformer& model, const FullReference& reference,
                                              std::span<const Sequence> sequences,
                                              std::span<const std::vector<float>> first_logits, Progress& progress) {
    const auto shape = model.shape();
    const auto total = static_cast<int64_t>(reference.tokens.size());
    std::vector<Comparison> comparisons(sequences.size());
    progress.begin("compare", (total - 1) * static_cast<int64_t>(sequences.size()), "tokens × runs");
    int64_t done = 0;
    for (const bool acting : {false, true}) {
        std::vector<Compared> group;
        for (size_t s = 0; s < sequences.size(); ++s) {
            if (sequences[s].acts() != acting) continue;
            auto& comparison = comparisons[s];
            comparison.step_kl.resize(static_cast<size_t>(total));
            comparison.step_agreement.resize(static_cast<size_t>(total));
            comparison.error = catch_single_run_failure(
                [&] { compare_rows(reference, 0, log_probabilities(first_logits[s]), comparison); });
            if (comparison.error.empty())
                group.push_back(
                    {sequences[s], OutputErrors(static_cast<size_t>(shape.n_layers * shape.n_heads)), &comparison});
        }
        const int64_t most = std::min(rows_together, model.backend().rows_alike());
        const int64_t together = acting ? 1 : most / std::clamp(static_cast<int64_t>(group.size()), int64_t{1}, most);
        compare_group(model, reference, std::move(group), together, progress, done);
    }
    return comparisons;
}

}  // namespace kvscope::engine
