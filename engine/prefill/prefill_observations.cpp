#include "engine/prefill/prefill_observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "engine/common/engine_error.h"
#include "kernels/threads/lowest_failure.h"
#include "kernels/threads/team.h"
#include "policies/registry/decidable_layers.h"
#include "policies/registry/validation.h"

namespace kvscope::engine {
namespace {

// Number of window attentions kept per layer, enough for all policies that the app shows side by side.
constexpr size_t n_latest = 4;

}  // namespace

PrefillObservations::PrefillObservations(policies::ModelShape shape, std::string model_fingerprint,
                                         std::vector<int32_t> token_ids, int window)
    : shape_(shape),
      model_fingerprint_(std::move(model_fingerprint)),
      token_ids_(std::move(token_ids)),
      window_(static_cast<int>(std::min<int64_t>(window, n_tokens()))) {
    window_attention_.reserve(static_cast<size_t>(shape.n_layers) * static_cast<size_t>(shape.n_heads) *
                              token_ids_.size());
}

PrefillObservations::~PrefillObservations() = default;

void PrefillObservations::add_layer(policies::LayerObservations& observed, const DenseLayer& dense) {
    const auto& attention = observed.window_attention(window_, 0.0f, policies::SoftmaxRange::visible);
    window_attention_.insert(window_attention_.end(), attention.begin(), attention.end());
    layers_.push_back(std::make_unique<ObservedLayer>(observed, dense));
}

int PrefillObservations::n_window() const { return layers_.empty() ? 0 : layers_[0]->observations.n_window; }

policies::RunContext PrefillObservations::context(const policies::PolicySpec& spec, int64_t budget, uint64_t seed,
                                                  std::optional<double> share) const {
    policies::RunContext context;
    context.shape = shape_;
    context.n_tokens = n_tokens();
    context.budget = spec.definition->is_full() ? n_tokens() : budget;
    context.budget_share = share;
    context.seed = seed;
    context.model_fingerprint = model_fingerprint_;
    context.token_ids = token_ids_;
    return context;
}

std::string PrefillObservations::obstacle(const policies::PolicySpec& spec, int64_t budget) const {
    const auto policy = spec.create();
    if (policy->needs().keys_before_rope) return spec.label() + " needs keys before RoPE, which are not kept";
    const auto run = context(spec, budget, 0, std::nullopt);
    try {
        policy->begin(run);
        if (policy.as<policies::AppendsTokens>()) return spec.label() + " reads its own tokens after the prompt";
        if (const auto* filters = policy.as<policies::FiltersPrompt>())
            return spec.label() + (std::holds_alternative<policies::FilterLayer>(filters->filter(run))
                                       ? " reads the prompt twice"
                                       : " compresses the text before the model reads it");
        if (policy.as<policies::ReadsThroughOwnCache>())
            return spec.label() + " reads the prompt through its own cache";
        if (policy.as<policies::LooksAhead>()) return spec.label() + " generates tokens before it decides";
    } catch (const policies::BudgetError&) {
        // select() reports the error.
    } catch (const policies::ParameterError& error) {
        return error.what();
    }
    const auto needs = policy->needs();
    if (needs.answer_attention) return spec.label() + " needs the attention of the full run's answer";
    if (needs.hidden_states || needs.projection_inputs)
        return spec.label() + " needs hidden states, which are not kept";
    if (std::min<int64_t>(needs.window_queries, n_tokens()) > n_window())
        return fmt::format("{} needs the queries of the last {} tokens, but {} were kept", spec.label(),
                           needs.window_queries, n_window());
    if (needs.attention_sums && layers_.front()->attention_sums.empty())
        return spec.label() + " needs attention sums, which were not collected";
    return {};
}

void PrefillObservations::decide(const policies::PolicySpec& spec, policies::Policy& policy, size_t layer,
                                 policies::Selection& selection) const {
    auto& observations = layers_[layer]->observations;
    selection = policy.select(observations);
    policies::require_valid_selection(spec.label(), static_cast<int>(layer), shape_, n_tokens(), selection);
    policies::require_valid_storage(spec.label(), static_cast<int>(layer), shape_, selection);
    observations.keep_latest(n_latest);
}

std::vector<policies::Selection> PrefillObservations::select_in_order(const policies::PolicySpec& spec,
                                                                      const policies::CreatedPolicy& policy) const {
    std::vector<policies::Selection> selections(layers_.size());
    policies::DecidableLayers order;
    for (const auto& layer : layers_) {
        policy->observe(layer->observations);
        const auto [first, end] = order.after(policy, layer->observations.layer, shape_.n_layers);
        for (int next = first; next < end; ++next)
            decide(spec, *policy, static_cast<size_t>(next), selections[static_cast<size_t>(next)]);
    }
    return selections;
}

std::vector<policies::Selection> PrefillObservations::select(const policies::PolicySpec& spec, int64_t budget,
                                                             uint64_t seed, std::optional<double> share) const {
    if (layers_.size() != static_cast<size_t>(shape_.n_layers))
        throw std::logic_error("a live prefill can select only after all layers were added");
    if (const auto reason = obstacle(spec, budget); !reason.empty())
        throw UsageError(reason + ": repeat the prefill with this policy");
    const std::lock_guard lock(mutex_);
    const auto run = context(spec, budget, seed, share);
    const auto first = spec.create();
    first->begin(run);
    if (first.as<policies::DecidesInOrder>()) return select_in_order(spec, first);
    std::vector<policies::Selection> selections(layers_.size());
    kernels::LowestFailure failure;
    std::atomic<size_t> unclaimed{0};
    kernels::run_on_thread_team(kernels::threads(), [&](int) {
        policies::CreatedPolicy policy;
        for (size_t layer = unclaimed++; layer < layers_.size(); layer = unclaimed++) {
            failure.guard(static_cast<int64_t>(layer), [&] {
                if (!policy) {
                    policy = spec.create();
                    policy->begin(run);
                }
                policy->observe(layers_[layer]->observations);
                decide(spec, *policy, layer, selections[layer]);
            });
        }
    });
    failure.rethrow();
    return selections;
}

}  // namespace kvscope::engine
