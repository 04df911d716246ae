#include "engine/run_requirements.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/checkpoint/weight_memory.h"
#include "engine/common/engine_error.h"
#include "engine/common/memory.h"
#include "kernels/types.h"
#include "policies/registry/feasibility.h"

namespace kvscope::engine {
namespace {

double share_kept(const RunPlan& plan, const policies::CacheSize& size) {
    try {
        if (plan.spec.definition->is_full()) return 1;
        if (const auto needed = plan.spec.needed_share(plan.budget, size)) return *needed;
        if (const auto share = plan.spec.own_share()) return *share;
        const int64_t entries = plan.budget.resolve(size.n_tokens, plan.spec.definition->budget_of);
        return static_cast<double>(std::min(entries, size.n_tokens)) / static_cast<double>(size.n_tokens);
    } catch (const std::invalid_argument&) {
        return 0;
    }
}

double bytes_of_caches(const policies::CacheSize& size, int64_t n_after, std::span<const RunPlan> plans,
                       const ExperimentOptions& options) {
    const policies::ModelShape& shape = size.shape;
    const double of_token = 2.0 * shape.n_layers * shape.n_kv_heads * shape.head_dim * size.bytes_per_number;
    double sum = 0, largest = 0;
    for (const RunPlan& plan : plans) {
        if (plan.spec.definition->is_full()) continue;
        const double share = share_kept(plan, size);
        const double bytes =
            share > 0 ? of_token * (share * static_cast<double>(size.n_tokens) + static_cast<double>(n_after)) : 0;
        sum += bytes;
        largest = std::max(largest, bytes);
    }
    const double full = of_token * static_cast<double>(size.n_tokens + n_after);
    return options.isolated ? std::max(full + largest, full * static_cast<double>(options.batch)) : full + sum;
}

double bytes_of_window(const policies::ModelShape& shape, int64_t n_tokens, const ExperimentOptions& options) {
    if (!options.record) return 0;
    const auto window = static_cast<double>(std::min<int64_t>(options.window, n_tokens));
    return double{sizeof(float)} * shape.n_layers * shape.n_heads * (window * window + static_cast<double>(n_tokens));
}

}  // namespace

uint64_t least_memory_bytes(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                            const ExperimentOptions& options) {
    const auto number = static_cast<double>(kernels::size_of(model.dtype()));
    double most = 0;
    for (const Prompt& prompt : prompts) {
        const policies::CacheSize size{shape_of(model.config()), prompt.n_visible(), number};
        const int64_t n_answer = options.ignore_eos ? options.n_new : std::min<int64_t>(options.n_new, 1);
        const int64_t n_after = static_cast<int64_t>(prompt.ids.size()) - prompt.n_visible() + n_answer;
        double bytes = bytes_of_window(size.shape, size.n_tokens, options);
        if (model.device().is_processor()) bytes += bytes_of_caches(size, n_after, plans, options);
        most = std::max(most, bytes);
    }
    return static_cast<uint64_t>(most);
}

void require_memory(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                    const ExperimentOptions& options, std::string remedy) {
    uint64_t bytes = least_memory_bytes(model, prompts, plans, options);
    if (!model.is_loaded()) {
        const checkpoint::WeightBytes found = checkpoint::count_weight_bytes(model.checkpoint(), model.dtype());
        const auto weights = static_cast<uint64_t>(found.held + found.largest);
        // Weights for a GPU leave the processor's memory before anything is recorded there.
        bytes = model.device().is_processor() ? bytes + weights : std::max(bytes, weights);
    }
    int64_t longest = 0;
    for (const Prompt& prompt : prompts) longest = std::max(longest, static_cast<int64_t>(prompt.ids.size()));
    if (options.record && options.window > RunOptions{}.window) remedy += ", a smaller --window";
    if (model.dtype() == kernels::DType::f32) remedy += ", --dtype bf16";
    require_available_memory(
        bytes,
        fmt::format("{} run{} of a prompt of {} tokens{} need at least", plans.size(), plans.size() == 1 ? "" : "s",
                    longest, model.is_loaded() ? "" : ", with the model's weights,"),
        remedy);
}

void require_any_possible_run(const Prompt& prompt, std::span<const RunPlan> plans,
                              std::span<const std::string> obstacles) {
    const auto others = obstacles.subspan(1);
    if (others.empty() || std::any_of(others.begin(), others.end(), [](const auto& why) { return why.empty(); }))
        return;
    std::string reasons;
    for (size_t i = 1; i < plans.size(); ++i) reasons += "\n  " + plans[i].asked() + ": " + obstacles[i];
    throw UsageError(
        fmt::format("none of the policies can run on this prompt of {} tokens:{}", prompt.n_visible(), reasons));
}

void require_any_possible_run(const Model& model, const Prompt& prompt, std::span<const RunPlan> plans) {
    const policies::UnreadPrompt ahead{shape_of(model.config()), model.fingerprint(), prompt.n_visible()};
    std::vector<std::string> obstacles{""};  // none for the full run
    for (const RunPlan& plan : plans.subspan(1)) {
        obstacles.push_back(policies::infeasible_budget_reason(plan.spec, plan.budget, ahead));
        if (obstacles.back().empty()) return;  // one possible run is enough
    }
    require_any_possible_run(prompt, plans, obstacles);
}

}  // namespace kvscope::engine
