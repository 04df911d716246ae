#include "analysis/measures/attention_lost.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace kvscope::analysis {
namespace {

template <class Values>
void add_part(const Values& values, std::span<const int> layers, std::vector<double>& mean) {
    for (size_t token = 0; token < mean.size(); ++token)
        mean[token] += static_cast<double>(values[token]) / static_cast<double>(layers.size());
}

}  // namespace

std::vector<double> attention_lost(std::span<const float> window_attention, size_t n_heads, const KeptSets& kept,
                                   size_t layer) {
    const size_t n = kept.n_tokens;
    if (kept.n_rows == 0 || n_heads % kept.n_rows != 0) {
        throw std::invalid_argument(fmt::format(
            "attention lost: {} query heads are not a multiple of {} rows of kept entries", n_heads, kept.n_rows));
    }
    if (window_attention.size() != n_heads * n) {
        throw std::invalid_argument(
            fmt::format("attention lost: {} values are not {} heads x {} tokens", window_attention.size(), n_heads, n));
    }
    const size_t group = n_heads / kept.n_rows;
    std::vector<double> lost(n, 0.0);
    size_t n_counted = 0;
    for (size_t head = 0; head < n_heads; ++head) {
        const auto attention = window_attention.subspan(head * n, n);
        const double total = std::accumulate(attention.begin(), attention.end(), 0.0);
        if (!(total > 0)) continue;
        ++n_counted;
        size_t token = 0;
        const auto lose_until = [&](size_t end) {
            for (; token < end; ++token) lost[token] += static_cast<double>(attention[token]) / total;
        };
        for (const uint32_t held : kept.row(layer, head / group)) {
            lose_until(held);
            token = held + size_t{1};
        }
        lose_until(n);
    }
    for (double& share : lost)
        share = n_counted > 0 ? share / static_cast<double>(n_counted) : std::numeric_limits<double>::quiet_NaN();
    return lost;
}

std::vector<double> kl_weighted_attention_lost(const trace::Reader& reader, int prompt, int run,
                                               std::span<const int> layers) {
    std::vector<double> lost(static_cast<size_t>(reader.prompt(prompt).visible_tokens()), 0.0);
    const auto place = trace::Place::of_run(prompt, run);
    if (reader.run(prompt, run).is_full()) return lost;
    if (!reader.has(place, trace::schema::run::kl_attention_lost)) return {};
    for (const int layer : layers)
        add_part(reader.read_layer<float>(place, trace::schema::run::kl_attention_lost, static_cast<size_t>(layer)),
                 layers, lost);
    return lost;
}

TokenLosses attention_lost_by_runs(const trace::Reader& reader, int prompt, std::span<const int> runs,
                                   std::span<const int> layers) {
    const auto n = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    const auto n_heads = static_cast<size_t>(reader.model().n_heads);
    TokenLosses losses;
    std::vector<std::shared_ptr<const trace::Kept>> kept;
    for (const int run : runs) {
        kept.push_back(reader.kept(prompt, run));
        auto& of = losses.runs.emplace_back();
        of.is_measured = can_measure_kept_tokens(reader.run(prompt, run), kept_sets(*kept.back(), n));
        of.kl_attention = kl_weighted_attention_lost(reader, prompt, run, layers);
    }
    if (!reader.has(trace::Place::of_prompt(prompt), trace::schema::prompt::window_attention)) return losses;
    losses.attention.assign(n, 0.0);
    for (auto& of : losses.runs) of.attention.assign(n, 0.0);
    const std::vector<uint64_t> no_rows(n_heads + 1, 0);
    const KeptSets nothing{1, n_heads, n, no_rows, {}};
    for (const int layer : layers) {
        const auto l = static_cast<size_t>(layer);
        const auto attention = reader.window_attention(prompt, l);
        add_part(attention_lost(attention, n_heads, nothing, 0), layers, losses.attention);
        for (size_t i = 0; i < kept.size(); ++i)
            add_part(attention_lost(attention, n_heads, kept_sets(*kept[i], n), l), layers, losses.runs[i].attention);
    }
    return losses;
}

}  // namespace kvscope::analysis
