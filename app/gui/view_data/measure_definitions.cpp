#include "app/gui/view_data/measure_definitions.h"

#include <array>
#include <utility>

#include "policies/registry/registry.h"

namespace kvscope::gui {
namespace {

constexpr auto definitions = std::to_array<std::pair<std::string_view, const char*>>(
    {{"kept_share", "entries kept / (layers · heads · tokens)"},
     {"removed_share", "1 − kept"},
     {"coverage",
      "share of tokens that at least one head of any layer keeps: C / N; K-VEC, Section 3.2, Tables 6 and 7"},
     {"kl_mean",
      "mean over decode steps of KL(full‖run) = Σ p_full ln(p_full / p_run); not from a paper. If the question was "
      "read "
      "before entries were dropped, the first step's value is 0 for policies that only drop entries"},
     {"kl_stderr_over_steps",
      "standard error of the mean over the steps of this answer, as if they were independent; not an error over "
      "prompts"},
     {"kl_steps", "number of decode steps of the full run's answer over which KL and agreement are averaged"},
     {"agreement",
      "share of decode steps, including the first, at which run and full run have the same greedy token; not from "
      "a paper"},
     {"attention_kept",
      "share Σ P_t of the window's full attention that falls on kept entries, mean over layers and heads; P: K-VEC, "
      "Eq. 8"},
     {"recall",
      "mean of |M_gold ∩ kept| / |M_gold|, M_gold: the B entries with the most attention from the answer; DapQ, Eqs. 1 "
      "to 3"},
     {"output_error", "‖o_run − o_full‖ / ‖o_full‖, mean over layers, heads and steps; o: ApertureKV, Eq. 5"},
     {"cache_bytes", "bytes that the cache holds after the prefill"},
     {"cache_bytes_predicted", "bytes that the kept entries need"},
     {"compression", "size of the full cache divided by the size of this cache, both for the prompt"},
     {"bytes_at", "estimated size of the cache for the number of tokens and the model chosen above the table"},
     {"compression_at",
      "estimated size of the full cache divided by that of this cache, for the tokens and model chosen above the "
      "table"},
     {"bytes_share", "size of this cache as a share of the full cache, both for the prompt"},
     {"select_s",
      "the policy's own time, on one thread if runs decide in parallel; work shared by several budgets counts for the "
      "first of them, or for the second if a single budget would not need it"},
     {"first_token_s", "time to the first token; isolated runs only"},
     {"decode_tokens_per_s", "generated tokens per second; isolated runs only"},
     {"peak_bytes", "highest resident memory during the run, minus the weights"},
     {"retention",
      "number of heads of the layer that keep the token; a token in an entry of n tokens counts 1/n; K-VEC, Figure 4"},
     {"layers",
      "n_t, number of layers that keep the token; a token in an entry of n tokens counts 1/n; K-VEC, Eq. 12, Figure 3"},
     {"layer_coverage",
      "share of tokens that at least one head of the layer keeps: C / N; K-VEC, Section 3.2, per layer"},
     {"head_budget",
      "B_h, number of entries that the head keeps, including window and sinks; ApertureKV, Eqs. 6, 14 and 17"},
     {"reconstruction", "‖x̂ − x‖ / ‖x‖ over all tokens in the head's cache; not from a paper"},
     {"channels", "number of heads of the layer that keep the channel; ThinK ranks channels by ‖Q[:, j]‖ ‖K[:, j]‖"},
     {"merging", "n_i, the number of tokens in entry i, in o = Σ exp(e_i) v_i / Σ n_i exp(e_i); AsymKV, KVSlimmer"},
     {"overlap", "Jaccard index |A ∩ B| / |A ∪ B| of the kept entries; not from a paper"},
     {"head_divergence", "JSD(p‖q) = ½ KL(p‖m) + ½ KL(q‖m), m = (p+q)/2; ApertureKV, Eq. 15, Figure 5"},
     {"query_similarity", "cos(q_i, q_j) = q_i·q_j / ‖q_i‖‖q_j‖ after RoPE; ApertureKV, Figure 4"},
     {"mean_query_similarity", "mean of cos(q_i, q_j) over i ≠ j; ApertureKV, Figure 6"},
     {"adjacent", "cos(y_t, y_t+1), y = xW before RoPE; KVSlimmer, Eq. 5, Figures 2, 8 and 9"},
     {"eigenvalues", "λ_i = σ_i², eigenvalues of WᵀW; KVSlimmer, Eqs. 6 and 7, Figures 2, 8 and 9"},
     {"cumulative", "Σ_{i≤k} λ_i / Σ_i λ_i, λ_i = σ_i²; KVSlimmer, Eqs. 6 and 7, Figures 2, 8 and 9"},
     {"contribution",
      "c_i = λ_i p_t,i p_t+1,i / ‖y_t‖ ‖y_t+1‖, p = xU, of each head: Σ_i c_i = cos(y_t, y_t+1); KVSlimmer, Eq. 8, "
      "Figures 2, 8 and 9"},
     {"layer-similarity",
      "mean cosine between a token's vectors before RoPE in one head of two layers; not from a paper"},
     {"head-similarity", "mean cosine between a token's vectors before RoPE in two heads of a layer; not from a paper"},
     {"alignment",
      "cos(E, c), E = ∂loss/∂o, mean over queries and pairs; c11, c12, c22: KVSlimmer, Eqs. 23 to 25 and 32, Figures 3 "
      "and 10 to 14"},
     {"kl",
      "KL(full‖run) = Σ p_full ln(p_full / p_run) in nats; both runs read the full run's tokens; not from a paper"}});

}  // namespace

const char* measure_definition(std::string_view name) {
    for (const auto& [known, words] : definitions)
        if (known == name) return words;
    return nullptr;
}

std::string score_definition(const std::string& policy) {
    const policies::Definition* definition = policies::find_definition(policy);
    if (!definition || definition->paper.empty()) return "score: the number by which " + policy + " ranks entries";
    return "score: the number by which " + definition->title + " ranks entries; " + definition->paper;
}

}  // namespace kvscope::gui
