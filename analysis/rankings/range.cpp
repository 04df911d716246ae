#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/measures/attention_lost.h"
#include "analysis/measures/heads_keeping_token.h"
#include "analysis/ranking.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// @throws FigureError if the range is not in the prompt
TokenRange chosen_range(const trace::Reader& reader, const FigureOptions& options) {
    const int64_t n = reader.prompt(options.prompt).visible_tokens();
    const TokenRange range = options.tokens.value_or(TokenRange{0, n - 1});
    if (range.first >= 0 && range.first <= range.last && range.last < n) return range;
    throw FigureError(fmt::format("policies see the prompt's tokens 0 to {}; tokens {} to {} were chosen", n - 1,
                                  range.first, range.last));
}

struct Scores {
    double mean = unknown, least = unknown, most = unknown;
};

/// Returns the scores of the range in all chosen layers and rows; NaN if no token of the range has a score.
Scores scores_of(const trace::Reader& reader, int prompt, int run, std::span<const int> layers, TokenRange range) {
    if (!reader.has(trace::Place::of_run(prompt, run), trace::schema::run::scores)) return {};
    const auto n = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    double sum = 0, least = std::numeric_limits<double>::infinity(), most = -least;
    size_t count = 0;
    for (const int layer : layers) {
        const std::vector<double> scores = reader.scores(prompt, run, static_cast<size_t>(layer));
        for (size_t i = 0; i < scores.size(); ++i) {
            const auto token = static_cast<int64_t>(i % n);
            if (token < range.first || token > range.last || !std::isfinite(scores[i])) continue;
            sum += scores[i];
            least = std::min(least, scores[i]);
            most = std::max(most, scores[i]);
            ++count;
        }
    }
    if (count == 0) return {};
    return {sum / static_cast<double>(count), least, most};
}

/// Returns the bytes that the range takes if all entries of a layer have equal size; NaN if not recorded.
double bytes_of(const trace::Reader& reader, int prompt, int run, const KeptSets& sets, std::span<const int> layers,
                TokenRange range) {
    if (!reader.has(trace::Place::of_run(prompt, run), trace::schema::run::cache_bytes)) return unknown;
    const auto bytes = reader.read<uint64_t>(trace::Place::of_run(prompt, run), trace::schema::run::cache_bytes);
    double sum = 0;
    for (const int layer : layers) {
        double entries = 0, within = 0;
        for (size_t row = 0; row < sets.n_rows; ++row)
            sets.each(static_cast<size_t>(layer), row, [&](uint32_t token, double share) {
                entries += share;
                if (token >= range.first && token <= range.last) within += share;
            });
        if (entries > 0) sum += static_cast<double>(bytes.at(static_cast<size_t>(layer))) * within / entries;
    }
    return sum;
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    const std::vector<int> runs = chosen_runs(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    const TokenRange range = chosen_range(reader, options);
    const auto n = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const TokenLosses losses = attention_lost_by_runs(reader, options.prompt, runs, layers);
    RankingRows rows(SubjectTable(
        "range", fmt::format("Runs ranked by their kept share of tokens {} to {}", range.first, range.last),
        {SubjectKey::run, label_column(), Column{"kept_share", "Kept", "", ColumnType::real, 3},
         Column{"tokens", "Tokens in any head", "", ColumnType::integer},
         Column{"bytes", "Bytes", "B", ColumnType::integer}, Column{"attention", "Attention", "", ColumnType::real, 4},
         Column{"attention_lost", "Attention lost", "", ColumnType::real, 4},
         Column{"kl_attention_lost", "Lost × KL", "nats", ColumnType::real, 4},
         Column{"score_mean", "Score, mean", "", ColumnType::real, 5},
         Column{"score_least", "Score, least", "", ColumnType::real, 5},
         Column{"score_most", "Score, most", "", ColumnType::real, 5}}));
    for (size_t i = 0; i < runs.size(); ++i) {
        const auto kept = reader.kept(options.prompt, runs[i]);
        const KeptSets sets = kept_sets(*kept, n);
        const std::vector<double> shares = share_of_heads_keeping(sets, layers);
        const auto begin = shares.begin() + range.first, end = shares.begin() + range.last + 1;
        const double share = std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
        const TokenLosses::OfRun& lost = losses.runs[i];
        const double bytes = bytes_of(reader, options.prompt, runs[i], sets, layers, range);
        const Scores scores = scores_of(reader, options.prompt, runs[i], layers, range);
        rows.add({{.run = runs[i]}}, share,
                 {run_label(reader.run(options.prompt, runs[i])), share,
                  static_cast<int64_t>(std::count_if(begin, end, [](double each) { return each > 0; })),
                  std::isnan(bytes) ? Cell() : Cell(static_cast<int64_t>(std::llround(bytes))),
                  known_cell(sum_over_tokens(losses.attention, range)),
                  known_cell(lost.is_measured ? sum_over_tokens(lost.attention, range) : unknown),
                  known_cell(lost.is_measured ? sum_over_tokens(lost.kl_attention, range) : unknown),
                  known_cell(scores.mean), known_cell(scores.least), known_cell(scores.most)});
    }
    return rows.take();
}

}  // namespace

FigureDefinition range_figure() {
    return define_ranking<make, chosen_runs>(
        "range", "Runs by the kept share of the selected tokens",
        "Runs ranked by the share of a token range that they keep, with the bytes, scores and lost attention of "
        "the range",
        {{"runs", "runs, by label, policy or number; default: all except full"},
         {"layers", "default: all"},
         {"tokens", "first and last token, as in 100-220; default: all"}});
}

}  // namespace kvscope::analysis
