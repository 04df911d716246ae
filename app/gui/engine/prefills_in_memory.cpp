#include "app/gui/engine/prefills_in_memory.h"

#include <algorithm>
#include <utility>

#include "analysis/what_if/what_if.h"
#include "app/gui/session/session.h"
#include "engine/experiment.h"
#include "engine/prefill/prefill.h"
#include "kernels/threads/team.h"

namespace kvscope::gui {

namespace {

constexpr size_t most_prefills = 2;

}  // namespace

bool KeptPrefills::Kept::is_of(int prompt) const { return std::ranges::find(prompts, prompt) != prompts.end(); }

std::shared_ptr<const PrefillInMemory> KeptPrefills::find(int document, int prompt) const {
    for (const Kept& kept : kept_)
        if (kept.document == document && kept.is_of(prompt)) return kept.prefill;
    return nullptr;
}

void KeptPrefills::keep(int document, const std::vector<int>& prompts, std::shared_ptr<const PrefillInMemory> prefill) {
    const Kept fresh{document, prompts, std::move(prefill)};
    for (Kept& kept : kept_) {
        if (kept.document == document) std::erase_if(kept.prompts, [&](int prompt) { return fresh.is_of(prompt); });
    }
    std::erase_if(kept_, [](const Kept& kept) { return kept.prompts.empty(); });
    kept_.insert(kept_.begin(), fresh);
    if (kept_.size() > most_prefills) kept_.resize(most_prefills);
}

void KeptPrefills::drop_closed(const Session& session) {
    std::erase_if(kept_, [&](const Kept& kept) { return !session.document(kept.document); });
}

namespace {

/// Minimum number of queries that a repeated prefill observes, so that windows can be enlarged.
constexpr int64_t observed_window = 128;

class InMemory final : public PrefillInMemory {
 public:
    InMemory(std::shared_ptr<const engine::PrefillObservations> prefill, std::function<bool()> is_engine_busy)
        : prefill_(std::move(prefill)), is_engine_busy_(std::move(is_engine_busy)) {}

    std::string obstacle(const policies::PolicySpec& spec, int64_t budget) const override {
        return prefill_->obstacle(spec, budget);
    }

    int widest_window() const override { return prefill_->n_window(); }

    trace::RunRecord what_if(const trace::Reader& reader, int prompt, const policies::PolicySpec& spec, int64_t budget,
                             double share, uint64_t seed) const override {
        std::vector<policies::Selection> selections;
        {
            const kernels::Threads as_many(is_engine_busy_() ? 1 : kernels::threads());
            selections = prefill_->select(spec, budget, seed, share);
        }
        auto record =
            analysis::what_if_record(reader, prompt, spec, budget, share, selections, prefill_->window_attention());
        record.seed = seed;
        return record;
    }

 private:
    std::shared_ptr<const engine::PrefillObservations> prefill_;
    std::function<bool()> is_engine_busy_;
};

}  // namespace

std::shared_ptr<const PrefillInMemory> make_prefill_in_memory(
    std::shared_ptr<const engine::PrefillObservations> prefill, std::function<bool()> is_engine_busy) {
    return std::make_shared<InMemory>(std::move(prefill), std::move(is_engine_busy));
}

std::shared_ptr<const engine::PrefillObservations> compute_prefill_observations(const engine::Model& model,
                                                                                const engine::Prompt& prompt,
                                                                                int64_t window,
                                                                                engine::Progress& progress) {
    const auto n = static_cast<size_t>(prompt.n_visible());
    const std::span<const int32_t> ids = std::span<const int32_t>(prompt.ids).first(n);
    const int64_t recorded = window > 0 ? window : engine::ExperimentOptions().window;
    const auto live = std::make_shared<engine::PrefillObservations>(model.transformer().shape(), model.fingerprint(),
                                                                    std::vector<int32_t>(ids.begin(), ids.end()),
                                                                    static_cast<int>(recorded));
    engine::PrefillRequest request;
    request.ids = ids;
    request.needs.window_queries = static_cast<int>(std::max(recorded, observed_window));
    request.needs.attention_sums = true;
    request.keep_cache = false;
    engine::prefill(
        model.transformer(), request, [&](engine::PrefillLayer& layer) { live->add_layer(layer.prompt, layer.dense); },
        progress);
    return live;
}

}  // namespace kvscope::gui
