#include "analysis/what_if/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/measures/attention_kept.h"
#include "analysis/measures/kept_sets.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_policy.h"
#include "analysis/runs/run_style.h"
#include "kernels/threads/team.h"
#include "policies/api/policy_errors.h"
#include "policies/registry/name_matching.h"
#include "policies/registry/registry.h"
#include "policies/registry/reselect.h"
#include "policies/registry/storage_recorder.h"

namespace kvscope::analysis {
namespace {

namespace schema = trace::schema;

policies::ModelShape shape_of(const trace::ModelAttributes& model) {
    return {static_cast<int>(model.n_layers), static_cast<int>(model.n_heads), static_cast<int>(model.n_kv_heads),
            static_cast<int>(model.head_dim)};
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

/// @param share budget as an exact share of the full cache's bytes, for policies that keep all tokens
void set_attributes(trace::RunRecord& record, const policies::PolicySpec& spec, int64_t budget, double share,
                    int64_t n_tokens) {
    record.policy = spec.definition->name;
    record.parameters_json = spec.values.to_json();
    record.budget = budget;
    record.budget_fraction = n_tokens > 0 ? static_cast<double>(budget) / static_cast<double>(n_tokens) : 0.0;
    if (spec.definition->budget_of == policies::BudgetOf::bytes) {
        record.budget_of = schema::run::budget_of_bytes;
        record.budget_fraction = spec.own_share().value_or(share);
    }
    const policies::Budget called{
        .is_share = record.budget_of == schema::run::budget_of_bytes, .count = budget, .share = record.budget_fraction};
    record.label = policies::run_label(spec, called) + " (what-if)";
    if (spec.values.has("window")) record.window = spec.values.integer("window");
    record.message = "what-if: selection only, without decoding";
}

bool stores_parts(const std::vector<policies::Selection>& selections) {
    return std::any_of(selections.begin(), selections.end(),
                       [](const policies::Selection& selection) { return selection.stored.has_value(); });
}

void set_selections(trace::RunRecord& record, const trace::ModelAttributes& model, int64_t n_tokens,
                    const std::vector<policies::Selection>& selections) {
    const bool kv_heads = selections.front().granularity == policies::Granularity::kv_head;
    record.granularity = std::string(kv_heads ? schema::run::granularity_kv_head : schema::run::granularity_query_head);
    const auto n_rows = static_cast<size_t>(kv_heads ? model.n_kv_heads : model.n_heads);
    const size_t element = model.dtype == "f32" ? 4 : 2;
    const bool in_parts = stores_parts(selections);
    policies::StorageRecorder<trace::RunRecord> storage;
    record.kept_offsets.push_back(0);
    for (size_t layer = 0; layer < selections.size(); ++layer) {
        const policies::Selection& selection = selections[layer];
        if (selection.rows.size() != n_rows || selection.granularity != selections.front().granularity) {
            throw std::invalid_argument(fmt::format("what-if: layer {} has {} rows of kept entries, expected {}", layer,
                                                    selection.rows.size(), n_rows));
        }
        for (const std::vector<uint32_t>& row : selection.rows) {
            append(record.kept_indices, row);
            record.kept_offsets.push_back(record.kept_indices.size());
        }
        const auto bytes = policies::row_bytes_of(selection, static_cast<int>(model.head_dim), element);
        record.head_bytes.insert(record.head_bytes.end(), bytes.begin(), bytes.end());
        record.cache_bytes_predicted.push_back(std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}));
        if (in_parts)
            storage.add_layer(policies::summarize_storage(record.label, static_cast<int>(layer), shape_of(model),
                                                          n_tokens, selection, element),
                              record);
        append(record.scores, selection.scores.vector());
        append(record.scores_f64, selection.scores_f64.vector());
        append(record.channel_scores, selection.channel_scores);
        append(record.head_jsd, selection.head_jsd);
    }
    storage.finish(record);
}

trace::RunRecord record_of(const trace::ModelAttributes& model, int64_t n_tokens, const policies::PolicySpec& spec,
                           int64_t budget, double share, const std::vector<policies::Selection>& selections,
                           std::span<const float> window_attention) {
    if (selections.empty() || selections.size() != static_cast<size_t>(model.n_layers)) {
        throw std::invalid_argument(
            fmt::format("what-if: {} selections for a model of {} layers", selections.size(), model.n_layers));
    }
    trace::RunRecord record;
    set_attributes(record, spec, budget, share, n_tokens);
    set_selections(record, model, n_tokens, selections);
    if (!window_attention.empty()) {
        const HeldTokens held(record, static_cast<size_t>(model.n_layers), static_cast<size_t>(n_tokens));
        record.attention_kept = attention_kept(window_attention, static_cast<size_t>(model.n_heads), held.sets());
    }
    return record;
}

std::vector<policies::LayerScores> by_layer(const trace::RunRecord& record, size_t n_layers) {
    std::vector<policies::LayerScores> layers(n_layers);
    for (size_t i = 0; i < n_layers; ++i) {
        const auto part = [&](const auto& all) {
            const auto length = static_cast<std::ptrdiff_t>(all.size() / n_layers);
            const auto first = all.begin() + static_cast<std::ptrdiff_t>(i) * length;
            return std::decay_t<decltype(all)>(first, first + length);
        };
        layers[i].granularity = record.granularity == schema::run::granularity_query_head
                                    ? policies::Granularity::query_head
                                    : policies::Granularity::kv_head;
        layers[i].scores = part(record.scores);
        layers[i].scores_f64 = part(record.scores_f64);
        layers[i].channel_scores = part(record.channel_scores);
    }
    return layers;
}

bool is_kept(const trace::Kept& kept, const std::vector<policies::Selection>& selections) {
    if (kept.n_layers != selections.size()) return false;
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        if (selections[layer].rows.size() != kept.n_rows) return false;
        for (size_t row = 0; row < kept.n_rows; ++row) {
            const auto recorded = kept.row(layer, row);
            if (!std::equal(recorded.begin(), recorded.end(), selections[layer].rows[row].begin(),
                            selections[layer].rows[row].end()))
                return false;
        }
    }
    return true;
}

bool binds_scores(const policies::Definition& definition, const policies::ParameterValues& values) {
    if (definition.scores_follow_budget) return true;
    for (const policies::Parameter& parameter : values.declared()) {
        if (parameter.binds_scores_to_budget && values.boolean(parameter.name)) return true;
    }
    return false;
}

}  // namespace

std::string obstacle_to_what_if(const policies::PolicySpec& spec) {
    const policies::CreatedPolicy policy = spec.create();
    const policies::Needs needs = policy->needs();
    if (policy.as<policies::ReadsThroughOwnCache>()) return "it reads the prompt through its own cache";
    if (needs.projection_inputs) return "it needs the inputs of the projections, which are not recorded";
    if (needs.keys_before_rope) return "it needs keys before RoPE, which are not recorded";
    return {};
}

WhatIf::WhatIf(const trace::Reader& reader, int prompt, int run) {
    check_prompt(reader, prompt);
    const trace::RunAttributes& attributes = reader.run(prompt, run);
    const auto refuse = [&](const std::string& why) -> NothingToShow {
        return NothingToShow(fmt::format("{}: {}", run_label(attributes), why));
    };
    if (attributes.status != schema::run::status_complete) {
        throw refuse("the run failed and cannot be changed: " + attributes.message);
    }
    recorded_ = policy_of_run(attributes);
    if (const auto obstacle = obstacle_to_what_if(recorded_); !obstacle.empty())
        throw refuse(obstacle + ": another budget needs a new run");
    model_ = reader.model();
    recorded_budget_ = attributes.budget;
    recorded_share_ = attributes.budget_fraction;
    n_tokens_ = reader.prompt(prompt).visible_tokens();
    seed_ = attributes.seed;
    token_ids_ = reader.token_ids(prompt);
    token_ids_.resize(static_cast<size_t>(n_tokens_));
    scores_ = by_layer(reader.run_record(prompt, run), static_cast<size_t>(model_.n_layers));
    try {
        const auto again = select(recorded_, recorded_budget_);
        if (!is_kept(*reader.kept(prompt, run), again)) {
            throw refuse("its recorded scores and budget do not reproduce its kept entries");
        }
        const trace::Place place = trace::Place::of_run(prompt, run);
        const bool has_channels = reader.has(place, schema::run::channels_kept);
        if (has_channels || stores_parts(again)) {
            trace::RunRecord stored;
            set_selections(stored, model_, n_tokens_, again);
            const auto channels =
                has_channels ? reader.read<uint8_t>(place, schema::run::channels_kept) : std::vector<uint8_t>{};
            if (stored.channels_kept != channels)
                throw refuse("its recorded scores and budget do not reproduce its kept key channels");
        }
    } catch (const policies::ScoreError& error) {
        const auto& first = scores_.front();
        const bool none = first.scores.empty() && first.scores_f64.empty() && first.channel_scores.empty();
        throw refuse(none ? "the trace has no scores of the run" + why_data_is_missing(reader, schema::run::scores)
                          : fmt::format("its scores cannot be ranked again: {}", error.what()));
    } catch (const policies::SelectionError& error) {
        throw refuse(error.what());
    } catch (const std::invalid_argument& error) {
        throw refuse(error.what());
    } catch (const std::logic_error& error) {
        throw refuse(error.what());
    }
    const trace::Place place = trace::Place::of_prompt(prompt);
    if (reader.has(place, schema::prompt::window_attention)) {
        window_attention_ = reader.read<float>(place, schema::prompt::window_attention);
    }
}

std::vector<policies::Selection> WhatIf::select(const policies::PolicySpec& spec, int64_t budget) const {
    const kernels::Threads one(1);  // one layer is too little work for several threads
    policies::RunContext context;
    context.shape = shape_of(model_);
    context.n_tokens = n_tokens_;
    context.budget = budget;
    context.budget_share = budget_as_share_of_full_cache(budget, recorded_budget_, recorded_share_, n_tokens_);
    context.seed = seed_;
    context.token_ids = token_ids_;
    return policies::reselect(*spec.definition, spec.values, context, scores_);
}

double budget_as_share_of_full_cache(int64_t budget, int64_t recorded_budget, double recorded_share, int64_t n_tokens) {
    if (budget == recorded_budget) return recorded_share;
    return std::min(static_cast<double>(budget) / static_cast<double>(std::max<int64_t>(n_tokens, 1)), 1.0);
}

std::vector<std::string> WhatIf::needs_prefill(const policies::ParameterValues& values,
                                               std::optional<int64_t> budget) const {
    const bool bound = binds_scores(*recorded_.definition, recorded_.values);
    std::vector<std::string> names;
    for (const policies::Parameter& parameter : recorded_.values.declared()) {
        if (values.value(parameter.name) == recorded_.values.value(parameter.name)) continue;
        if (bound || !parameter.after_scores) names.push_back(parameter.name);
    }
    if (bound && budget && *budget != recorded_budget_) names.emplace_back("budget");
    return names;
}

trace::RunRecord WhatIf::operator()(const policies::ParameterValues& values, int64_t budget) const {
    if (const auto names = needs_prefill(values, budget); !names.empty()) {
        throw policies::ParameterError(fmt::format(
            "{}: {} cannot be changed without a new prefill, because the recorded scores depend on the recorded value",
            definition().name, policies::joined(names)));
    }
    const policies::PolicySpec spec{recorded_.definition, values};
    trace::RunRecord record =
        record_of(model_, n_tokens_, spec, budget,
                  budget_as_share_of_full_cache(budget, recorded_budget_, recorded_share_, n_tokens_),
                  select(spec, budget), window_attention_);
    record.seed = seed_;
    return record;
}

trace::RunRecord what_if_record(const trace::Reader& reader, int prompt, const policies::PolicySpec& spec,
                                int64_t budget, double share, const std::vector<policies::Selection>& selections,
                                std::span<const float> window_attention) {
    check_prompt(reader, prompt);
    const int64_t n_tokens = reader.prompt(prompt).visible_tokens();
    return record_of(reader.model(), n_tokens, spec, budget, share, selections, window_attention);
}

}  // namespace kvscope::analysis
