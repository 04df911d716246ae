#include "app/gui/session/measure_definitions.h"

#include <array>
#include <utility>

#include "policies/interface/registry.h"

namespace kvscope::gui {
namespace {

constexpr auto definitions = std::to_array<std::pair<std::string_view, const char*>>(
    {{"kept_share", "entries kept / (layers · heads · tokens)"},
     {"removed_share", "1 − kept"},
     {"coverage", "unique tokens that any head of any layer keeps, of all: C / N; K-VEC, Section 3.2, Tables 6 and 7"},
     {"kl_mean",
      "mean over decode steps of KL(full‖run) = Σ p_full ln(p_full / p_run); kvscope's own. Where the question was "
      "read "
      "before anything was dropped, the first step's is 0 for policies that only drop entries"},
     {"kl_stderr_over_steps",
      "standard error of the mean over the steps of this one answer, as if they were independent: not an error over "
      "prompts"},
     {"kl_steps", "decode steps of the full cache's answer that KL and agreement are means over"},
     {"agreement",
      "share of decode steps, the first included, at which both would draw the same greedy token; kvscope's own"},
     {"attention_kept",
      "share Σ P_t of the window's full attention on kept entries, mean over layers and heads; P: K-VEC, Eq. 8"},
     {"recall", "|M_gold ∩ kept| / |M_gold|, M_gold: the best B by the answer's attention; mean; DapQ, Eqs. 1 to 3"},
     {"output_error", "‖o_run − o_full‖ / ‖o_full‖, mean over layers, heads and steps; o: ApertureKV, Eq. 5"},
     {"cache_bytes", "really held after the prefill"},
     {"cache_bytes_predicted", "what the kept entries need"},
     {"compression", "how many times smaller than the full cache's what is held of the prompt is: 1 / of full"},
     {"bytes_at", "what the cache would take with so many tokens in the model chosen above the table"},
     {"compression_at", "how many times smaller than the full cache that would be"},
     {"bytes_share", "what is held of the prompt, of the full cache's bytes"},
     {"select_s",
      "the policy's own seconds, on one thread where runs decide beside one another; what several budgets share is "
      "done once, and counted at the first of them, or at the second what only several need"},
     {"first_token_s", "to the first token; isolated runs only"},
     {"decode_tokens_per_s", "isolated runs only"},
     {"peak_bytes", "highest resident memory during the run, less the weights"},
     {"retention", "heads of the layer that keep the token, each 1/n in an entry of n tokens; K-VEC, Figure 4"},
     {"layers", "n_t, layers that keep the token, each 1/n in an entry of n tokens; K-VEC, Eq. 12, Figure 3"},
     {"layer_coverage", "unique tokens that any head of the layer keeps, of all: C / N; K-VEC, Section 3.2, by layer"},
     {"head_budget", "B_h, entries that the head keeps, window and sinks included; ApertureKV, Eqs. 6, 14 and 17"},
     {"reconstruction", "‖x̂ − x‖ / ‖x‖ over all tokens that the head's cache holds; kvscope's own"},
     {"channels", "heads of the layer that keep the channel; ThinK ranks it by ‖Q[:, j]‖ ‖K[:, j]‖"},
     {"merging", "n_i of an entry in o = Σ exp(e_i) v_i / Σ n_i exp(e_i); AsymKV, KVSlimmer"},
     {"overlap", "Jaccard index |A ∩ B| / |A ∪ B| of the kept entries; kvscope's own"},
     {"head_divergence", "JSD(p‖q) = ½ KL(p‖m) + ½ KL(q‖m), m = (p+q)/2; ApertureKV, Eq. 15, Figure 5"},
     {"query_similarity", "cos(q_i, q_j) = q_i·q_j / ‖q_i‖‖q_j‖ after RoPE; ApertureKV, Figure 4"},
     {"mean_query_similarity", "mean of cos(q_i, q_j) over i ≠ j; ApertureKV, Figure 6"},
     {"adjacent", "cos(y_t, y_t+1), y = xW before RoPE; KVSlimmer, Eq. 5, Figures 2, 8 and 9"},
     {"eigenvalues", "λ_i = σ_i², eigenvalues of WᵀW; KVSlimmer, Eqs. 6 and 7, Figures 2, 8 and 9"},
     {"cumulative", "Σ_{i≤k} λ_i / Σ_i λ_i, λ_i = σ_i²; KVSlimmer, Eqs. 6 and 7, Figures 2, 8 and 9"},
     {"contribution",
      "c_i = λ_i p_t,i p_t+1,i / ‖y_t‖ ‖y_t+1‖, p = xU, of each head: Σ_i c_i = cos(y_t, y_t+1); KVSlimmer, Eq. 8, "
      "Figures 2, 8 and 9"},
     {"layer-similarity", "cosine of a token's vectors before RoPE in one head of two layers, mean; kvscope's own"},
     {"head-similarity", "cosine of a token's vectors before RoPE in two heads of a layer, mean; kvscope's own"},
     {"alignment",
      "cos(E, c), E = ∂loss/∂o, mean over queries and pairs; c11, c12, c22: KVSlimmer, Eqs. 23 to 25 and 32, Figures 3 "
      "and 10 to 14"},
     {"kl", "KL(full‖run) = Σ p_full ln(p_full / p_run), nats, both fed the full run's tokens; kvscope's own"}});

}  // namespace

const char* measure_definition(std::string_view name) {
    for (const auto& [known, words] : definitions) {
        if (known == name) return words;
    }
    return nullptr;
}

std::string score_definition(const std::string& policy) {
    const policies::Definition* definition = policies::find_definition(policy);
    if (!definition || definition->paper.empty()) return "score: what " + policy + " ranks the tokens by";
    return "score: what " + definition->title + " ranks the tokens by; " + definition->paper;
}

}  // namespace kvscope::gui
