#include "app/gui/view_data/measure_definitions.h"

#include <array>
#include <utility>

#include "policies/registry/registry.h"

namespace kvscope::gui {
namespace {

constexpr auto definitions = std::to_array<std::pair<std::string_view, const char*>>(
    {{"kept_share", "entries kept / (layers · heads · tokens)"},
     {"removed_share", "1 − kept"},
     {"coverage", "share of tokens that at least one head of any layer keeps (C / N in K-VEC, Section 3.2)"},
     {"kl_mean",
      "mean KL(full‖run) in nats over decode steps. If the policy saw the question, the first step's value is 0 for "
      "policies that only drop entries"},
     {"kl_stderr_over_steps",
      "standard error over the steps of this answer, as if they were independent; not over prompts"},
     {"kl_steps", "number of decode steps over which KL and agreement are averaged"},
     {"agreement", "share of decode steps at which run and full run have the same most probable token"},
     {"attention_kept",
      "share of the window's attention that falls on kept entries, mean over layers and heads (sum of P in K-VEC, "
      "Eq. 8)"},
     {"recall",
      "kept share of the entries that get the most attention from the answer, as many as the budget; mean over layers "
      "and heads (DapQ, Eqs. 1 to 3)"},
     {"output_error",
      "relative error of the attention's output, mean over layers, heads and steps (o in ApertureKV, Eq. 5)"},
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
     {"retention", "heads of the layer that keep the token (K-VEC, Figure 4)"},
     {"layers", "layers that keep the token (n_t in K-VEC, Eq. 12)"},
     {"layer_coverage", "share of tokens that at least one head of the layer keeps (C / N in K-VEC, Section 3.2)"},
     {"head_budget", "entries that the head keeps, including window and sinks (B_h in ApertureKV, Eq. 6)"},
     {"reconstruction",
      "relative error ‖x̂ − x‖ / ‖x‖ of the stored keys or values, over all tokens in the head's cache"},
     {"channels", "heads of the layer that keep the channel; ThinK ranks channels by ‖Q[:, j]‖ ‖K[:, j]‖"},
     {"merging", "tokens in the entry (n_i in AsymKV and KVSlimmer)"},
     {"overlap", "same entries: Jaccard index |A ∩ B| / |A ∪ B| of the entries that A and B keep"},
     {"head_divergence", "Jensen-Shannon divergence between two heads, 0 to ln 2 (ApertureKV, Eq. 15)"},
     {"query_similarity", "cosine between two queries of the window after RoPE (ApertureKV, Figure 4)"},
     {"mean_query_similarity", "mean cosine between different queries of the window (ApertureKV, Figure 6)"},
     {"adjacent", "cosine between the vectors of neighboring tokens before RoPE (KVSlimmer, Eq. 5)"},
     {"eigenvalues", "eigenvalues λ_i of WᵀW, for the projection W (KVSlimmer, Eqs. 6 and 7)"},
     {"cumulative", "share of the k largest eigenvalues in the sum of all (KVSlimmer, Eqs. 6 and 7)"},
     {"contribution",
      "part of eigenvalue i in the cosine between neighboring tokens; the parts of a head add up to the cosine "
      "(KVSlimmer, Eq. 8)"},
     {"layer-similarity", "mean cosine between a token's vectors before RoPE in one head of two layers"},
     {"head-similarity", "mean cosine between a token's vectors before RoPE in two heads of a layer"},
     {"alignment",
      "cosine between the loss's gradient and c11, c12 or c22, mean over queries and pairs (KVSlimmer, Eqs. 23 to 25 "
      "and 32)"},
     {"kl",
      "KL(full‖run) in nats: divergence of the run's next token from the full run's, if both read the full run's "
      "tokens"}});

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
