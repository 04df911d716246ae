#include "kernels/integer_shares.h"
#include "kernels/select_topk.h"
#include "policies/bases/adaptive_policy.h"
#include "policies/bases/score_operations.h"

namespace kvscope::policies {

std::vector<int64_t> adaptive_budgets(const Scores<float>& scores, int rows, int64_t n_prefix, int64_t n_tokens,
                                      int64_t c, double alpha) {
    return with_safeguard(count_best_by_row(scores, rows, n_prefix, n_tokens, rows * c), c, alpha);
}

std::vector<int64_t> with_safeguard(std::vector<int64_t> counts, int64_t c, double alpha) {
    if (alpha == 0.0) return counts;
    std::vector<double> quotas;
    for (int64_t count : counts) {
        quotas.push_back(static_cast<double>(count) * (1.0 - alpha) + alpha * static_cast<double>(c));
    }
    return kernels::integer_shares(quotas, static_cast<int64_t>(counts.size()) * c);
}

void weigh_by_concentration(float* scores, int rows, int64_t n_prefix, int64_t row_stride, int64_t c) {
    std::vector<uint32_t> best(static_cast<size_t>(c));
    for (int row = 0; row < rows; ++row) {
        float* score = scores + row * row_stride;
        kernels::select_topk(score, n_prefix, c, best.data());
        double sum = 0.0, of_best = 0.0;
        for (int64_t i = 0; i < n_prefix; ++i) sum += score[i];
        for (uint32_t i : best) of_best += score[i];
        if (!(sum > 0.0)) continue;
        for (int64_t i = 0; i < n_prefix; ++i) score[i] = static_cast<float>(score[i] * (of_best / sum));
    }
}

Definition ada_snapkv_definition() {
    return {
        .name = "ada-snapkv",
        .title = "Ada-SnapKV",
        .paper =
            "Feng et al., Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
            "Inference, 2024, arXiv:2407.11550",
        .summary =
            "Ranks the prefix as SnapKV does. Each layer keeps the entries with the best scores over all of its heads. "
            "The parameter `alpha` reserves part of the budget for each head.",
        .parameters = snapkv_family_parameters({alpha_parameter(0.2), normalize_parameter()}),
        .create = make_policy<AdaptivePolicy>,
    };
}

}  // namespace kvscope::policies
