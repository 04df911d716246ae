#include "analysis/runs/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/measures/attention_lost.h"
#include "analysis/measures/heads_keeping_token.h"
#include "analysis/ranking.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

struct OfTokens {
    std::array<std::vector<double>, 2> kept;  ///< share of the layers' rows that keep the token
    TokenLosses losses;
};

OfTokens read_tokens(const trace::Reader& reader, int prompt, const std::vector<int>& runs,
                     const std::vector<int>& layers) {
    OfTokens of{{}, attention_lost_by_runs(reader, prompt, runs, layers)};
    for (size_t side = 0; side < 2; ++side) of.kept[side] = share_of_heads_keeping(reader, prompt, runs[side], layers);
    return of;
}

double difference_of(const TokenLosses& losses, std::vector<double> TokenLosses::OfRun::*measure, TokenRange range) {
    return sum_over_tokens(losses.runs[0].*measure, range) - sum_over_tokens(losses.runs[1].*measure, range);
}

Ranking make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<int> runs = compared_runs(reader, options);
    const OfTokens of = read_tokens(reader, options.prompt, runs, chosen_layers(reader, options));
    const TokenTexts texts = join_tokens_into_text(reader.token_text(options.prompt));
    const bool has_kl = std::all_of(of.losses.runs.begin(), of.losses.runs.end(),
                                    [](const TokenLosses::OfRun& run) { return !run.kl_attention.empty(); });
    RankingRows rows(SubjectTable(
        "sentences",
        fmt::format("Sentences ranked by {}: A ({}) − B ({})",
                    has_kl ? "attention lost × KL" : "kept share, smallest first",
                    run_label(reader.run(options.prompt, runs[0])), run_label(reader.run(options.prompt, runs[1]))),
        {Column{"first_token", "First token", "", ColumnType::integer},
         Column{"last_token", "Last token", "", ColumnType::integer},
         Column{"tokens", "Tokens", "", ColumnType::integer}, Column{"text", "Text", "", ColumnType::text},
         Column{"kept_a", "Kept, A", "", ColumnType::real, 3}, Column{"kept_b", "Kept, B", "", ColumnType::real, 3},
         Column{"difference", "Kept, A − B", "", ColumnType::real, 3},
         Column{"attention_lost", "Lost, A − B", "", ColumnType::real, 5},
         Column{"kl_attention_lost", "Lost × KL, A − B", "nats", ColumnType::real, 4}}));
    for (const TokenSpan span :
         split_into_sentences_to_rank(texts, of.kept[0].size(), !reader.prompt(options.prompt).chat_template.empty())) {
        const auto n = static_cast<double>(span.last - span.first + 1);
        const double a = sum_over_tokens(of.kept[0], token_range_of_span(span)) / n;
        const double b = sum_over_tokens(of.kept[1], token_range_of_span(span)) / n;
        const double lost = difference_of(of.losses, &TokenLosses::OfRun::attention, token_range_of_span(span));
        const double weighted = difference_of(of.losses, &TokenLosses::OfRun::kl_attention, token_range_of_span(span));
        rows.add({{.run = runs[0], .token = static_cast<int>(span.first)}, static_cast<int>(span.last)},
                 has_kl ? weighted : b - a,
                 {static_cast<int64_t>(span.first), static_cast<int64_t>(span.last), static_cast<int64_t>(n),
                  trimmed_text(texts, span), a, b, a - b, known_cell(lost), known_cell(weighted)});
    }
    return rows.take();
}

}  // namespace

FigureDefinition sentences_figure() {
    return define_ranking<make, compared_runs>(
        "sentences", "Sentences that A lost and B kept",
        "Sentences of the prompt, ranked by the KL-weighted attention that A loses minus the attention that B "
        "loses. If the trace has no KL weights, the ranking uses the kept share in B minus the kept share in A",
        {{"runs", "two runs, A and B, by label or number; default: the first two except full"},
         {"layers", "default: all"}});
}

}  // namespace kvscope::analysis
