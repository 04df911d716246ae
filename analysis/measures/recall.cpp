#include "analysis/measures/recall.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "kernels/select_topk.h"

namespace kvscope::analysis {
namespace {

namespace schema = trace::schema;

double mean(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// @param heads (L, R)
Recall with_layer_means(std::vector<double> heads, size_t n_layers) {
    Recall recall{std::move(heads), {}};
    const size_t n_rows = recall.heads.size() / n_layers;
    for (size_t layer = 0; layer < n_layers; ++layer)
        recall.layers.push_back(mean(std::span(recall.heads).subspan(layer * n_rows, n_rows)));
    return recall;
}

}  // namespace

std::vector<uint32_t> most_attended_positions(std::span<const float> answer_attention, size_t n_kv_heads,
                                              size_t budget) {
    if (n_kv_heads == 0 || answer_attention.size() % n_kv_heads != 0) {
        throw std::invalid_argument(fmt::format("recall: {} attention values are not a multiple of {} KV heads",
                                                answer_attention.size(), n_kv_heads));
    }
    const size_t n_tokens = answer_attention.size() / n_kv_heads;
    const size_t n_gold = std::min(budget, n_tokens);
    std::vector<uint32_t> gold(n_kv_heads * n_gold);
    for (size_t head = 0; head < n_kv_heads; ++head) {
        kernels::select_topk(answer_attention.data() + head * n_tokens, static_cast<int64_t>(n_tokens),
                             static_cast<int64_t>(n_gold), gold.data() + head * n_gold);
    }
    return gold;
}

std::vector<double> layer_recall(std::span<const uint32_t> gold, size_t n_kv_heads, const KeptSets& kept,
                                 size_t layer) {
    if (n_kv_heads == 0 || gold.size() % n_kv_heads != 0 || kept.n_rows % n_kv_heads != 0) {
        throw std::invalid_argument(
            fmt::format("recall: {} best positions, {} KV heads and {} rows of kept entries do not match", gold.size(),
                        n_kv_heads, kept.n_rows));
    }
    const size_t n_gold = gold.size() / n_kv_heads;
    const size_t group = kept.n_rows / n_kv_heads;
    std::vector<double> shares;
    for (size_t row = 0; row < kept.n_rows; ++row) {
        const auto of_head = gold.subspan(row / group * n_gold, n_gold);
        const auto of_row = kept.row(layer, row);
        size_t found = 0;
        auto next = of_row.begin();
        for (const uint32_t position : of_head) {
            next = std::lower_bound(next, of_row.end(), position);
            if (next == of_row.end()) break;
            found += *next == position;
        }
        shares.push_back(n_gold > 0 ? static_cast<double>(found) / static_cast<double>(n_gold)
                                    : std::numeric_limits<double>::quiet_NaN());
    }
    return shares;
}

std::optional<int> full_run_with_answer_attention(const trace::Reader& reader, int prompt) {
    const auto full = reader.full_run(prompt);
    if (!full || !reader.has(trace::Place::of_run(prompt, *full), schema::run::answer_attention)) return std::nullopt;
    return full;
}

Recall recall_of_run(std::span<const float> answer_attention, size_t n_kv_heads, const KeptSets& kept, size_t budget) {
    std::vector<double> heads;
    const size_t n_of_layer = answer_attention.size() / kept.n_layers;
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        const auto gold =
            most_attended_positions(answer_attention.subspan(layer * n_of_layer, n_of_layer), n_kv_heads, budget);
        std::ranges::copy(layer_recall(gold, n_kv_heads, kept, layer), std::back_inserter(heads));
    }
    return with_layer_means(std::move(heads), kept.n_layers);
}

bool has_recall(const trace::Reader& reader, int prompt) {
    if (full_run_with_answer_attention(reader, prompt)) return true;
    for (int run = 0; run < reader.n_runs(prompt); ++run)
        if (reader.has(trace::Place::of_run(prompt, run), schema::run::recall)) return true;
    return false;
}

std::vector<Recall> recall_of_runs(const trace::Reader& reader, int prompt, std::span<const int> runs,
                                   std::span<const std::shared_ptr<const trace::Kept>> kept) {
    const auto full = full_run_with_answer_attention(reader, prompt);
    const auto n_kv_heads = static_cast<size_t>(reader.model().n_kv_heads);
    const auto n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    const auto n_layers = static_cast<size_t>(reader.model().n_layers);
    std::vector<std::vector<double>> heads(runs.size());  // (L, R) of each run
    for (size_t i = 0; i < runs.size() && !full; ++i) {
        const auto place = trace::Place::of_run(prompt, runs[i]);
        if (!reader.has(place, schema::run::recall)) continue;
        const auto recorded = reader.read<float>(place, schema::run::recall);
        heads[i].assign(recorded.begin(), recorded.end());
    }
    for (size_t layer = 0; layer < n_layers && full; ++layer) {
        const auto attention =
            reader.read_layer<float>(trace::Place::of_run(prompt, *full), schema::run::answer_attention, layer);
        std::map<int64_t, std::vector<uint32_t>> gold;
        for (size_t i = 0; i < runs.size(); ++i) {
            const int64_t budget = std::max<int64_t>(reader.run(prompt, runs[i]).budget, 0);
            auto& of_budget = gold[budget];
            if (of_budget.empty())
                of_budget = most_attended_positions(attention, n_kv_heads, static_cast<size_t>(budget));
            std::ranges::copy(layer_recall(of_budget, n_kv_heads, kept_sets(*kept[i], n_tokens), layer),
                              std::back_inserter(heads[i]));
        }
    }
    std::vector<Recall> recalls;
    for (auto& of_run : heads) recalls.push_back(with_layer_means(std::move(of_run), n_layers));
    return recalls;
}

}  // namespace kvscope::analysis
