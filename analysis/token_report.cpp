#include "analysis/token_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/measures/kept_sets.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "common/counted.h"
#include "policies/bases/scoring_policy.h"
#include "policies/registry/policy_from_record.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

const trace::RunAttributes& finished_run(const trace::Reader& reader, int prompt, int run) {
    check_prompt(reader, prompt);
    const trace::RunAttributes& attributes = reader.run(prompt, run);
    if (attributes.status != schema::run::status_complete) {
        throw NothingToShow(fmt::format("{} failed and kept nothing: {}", run_label(attributes), attributes.message));
    }
    return attributes;
}

/// Returns the first position that the policy keeps regardless of its score; N if there is none.
int64_t ranked_before(const trace::RunAttributes& run, int64_t n_tokens) {
    try {
        const auto spec = policies::policy_from_record(run.policy, run.parameters_json);
        const int64_t recent = policies::recent_entries(spec.values, run.budget);
        return n_tokens - std::min({recent, run.budget, n_tokens});
    } catch (const policies::ParameterError&) {
        return n_tokens;  // policy of another version: only the scores are known
    }
}

struct RankedRow {
    std::span<const double> scores;
    std::span<const uint32_t> kept;
    int64_t n_ranked = 0;  ///< Only lower positions can be candidates.

    bool keeps(uint32_t token) const { return std::binary_search(kept.begin(), kept.end(), token); }
    bool is_candidate(uint32_t token) const {
        return token < n_ranked && token < scores.size() && !std::isnan(scores[token]);
    }
    bool better(uint32_t a, uint32_t b) const { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); }
};

TokenDecision decision(const RankedRow& row, uint32_t token) {
    TokenDecision d;
    d.kept = row.keeps(token);
    d.candidate = row.is_candidate(token);
    if (token < row.scores.size()) d.score = row.scores[token];
    size_t n_better = 0;
    for (uint32_t other = 0; other < row.scores.size(); ++other) {
        if (!row.is_candidate(other)) continue;
        ++d.n_candidates;
        if (d.candidate && row.better(other, token)) ++n_better;
    }
    if (d.candidate) d.rank = n_better + 1;
    for (const uint32_t kept : row.kept) {
        if (!row.is_candidate(kept)) continue;
        ++d.n_candidates_kept;
        if (!(row.scores[kept] >= d.cut_off)) d.cut_off = row.scores[kept];
    }
    return d;
}

struct LayerRows {
    std::vector<double> scores;  ///< (R, N) or empty
    const trace::Kept* kept = nullptr;
    size_t layer = 0;
    size_t n_tokens = 0;
    int64_t n_ranked = 0;

    RankedRow row(size_t r) const {
        const std::span<const double> all(scores);
        return {all.empty() ? all : all.subspan(r * n_tokens, n_tokens), kept->held(layer, r), n_ranked};
    }
};

std::string percent(size_t part, size_t whole) {
    return format_share(static_cast<double>(part) / static_cast<double>(whole));
}

std::string count(size_t value) { return format_count(static_cast<int64_t>(value)); }

void check_token(const trace::Reader& reader, int prompt, int64_t token) {
    const int64_t n_tokens = reader.prompt(prompt).visible_tokens();
    if (token >= 0 && token < n_tokens) return;
    throw std::out_of_range(
        fmt::format("there is no token {}: policies see the prompt's tokens 0 to {}", token, n_tokens - 1));
}

/// Returns "layer 3", "layers 2, 5–7 and 9" (at most six parts) or "every layer". @param layers ascending, not empty
std::string layers_text(const std::vector<size_t>& layers, size_t n_layers) {
    constexpr size_t most_parts = 6;
    if (layers.size() == n_layers && n_layers > 1) return "every layer";
    std::vector<std::string> parts;
    size_t n_named = 0;
    for (size_t i = 0; i < layers.size() && parts.size() < most_parts;) {
        size_t end = i + 1;
        while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
        if (end - i == 2) end = i + 1;
        parts.push_back(end - i == 1 ? std::to_string(layers[i]) : fmt::format("{}–{}", layers[i], layers[end - 1]));
        n_named += end - i;
        i = end;
    }
    if (n_named < layers.size()) parts.push_back(counted(static_cast<int64_t>(layers.size() - n_named), "more layer"));
    const std::string last = parts.back();
    parts.pop_back();
    const std::string first = fmt::format("{}{}", fmt::join(parts, ", "), parts.empty() ? "" : " and ");
    return fmt::format("layer{} {}{}", layers.size() == 1 ? "" : "s", first, last);
}

std::string sentence_of(const SpanReport& report, const trace::RunAttributes& run, size_t n_layers) {
    const std::string label = run_label(run);
    const std::string heads = fmt::format("{} of {} heads ({})", count(report.n_keeping_all), count(report.n_places),
                                          percent(report.n_keeping_all, report.n_places));
    const std::string layers =
        report.n_keeping_all > 0 ? ", in " + layers_text(report.layers_keeping_all, n_layers) : "";
    std::string merged;
    if (report.n_merging > 0)
        merged = fmt::format("; merged with other tokens in {} heads, {} entries in all", count(report.n_merging),
                             format_number(report.n_entries));
    if (report.n_rebuilding > 0)
        merged += fmt::format("; kept in part and rebuilt in {} heads", count(report.n_rebuilding));
    const char* whole = merged.empty() ? "kept whole in" : "all tokens kept at least in part in";
    const size_t n_partly = report.n_keeping_any - report.n_keeping_all;
    if (report.n_tokens == 1) return fmt::format("{}: kept in {}{}{}", label, heads, layers, merged);
    std::string sentence =
        fmt::format("{}: {} {}{}{} partly in {} more {}; {} of {} tokens are kept in at least one head{}", label, whole,
                    heads, layers, layers.empty() ? "," : ";", count(n_partly), n_partly == 1 ? "head" : "heads",
                    count(report.n_tokens_kept), count(report.n_tokens), merged);
    if (report.n_keeping_all > 0 || report.n_keeping_any == 0) return sentence;
    const bool query_heads = run.granularity == schema::run::granularity_query_head;
    return fmt::format("{}; the largest part in layer {}, {} head {}: {} of {} tokens", sentence, report.most.layer,
                       query_heads ? "query" : "KV", report.most.row, count(report.most.n_tokens),
                       count(report.n_tokens));
}

/// Returns "merged into an entry of 3 that ends at token 17", and the cardinality if it differs from 3.
std::string merged_text(const trace::TokenFate& fate) {
    std::string counted;
    if (fate.cardinality != static_cast<float>(fate.n_tokens))
        counted = fmt::format(", which counts as {} tokens in attention,", format_number(double{fate.cardinality}));
    return fmt::format("merged into an entry of {}{} that ends at token {}", count(fate.n_tokens), counted,
                       count(fate.entry));
}

std::string error_text(const trace::TokenFate& fate) {
    if (std::isnan(fate.key_error) || std::isnan(fate.value_error)) return "";
    return fmt::format(" (relative error of this head: {} of the keys, {} of the values)",
                       format_share(double{fate.key_error}), format_share(double{fate.value_error}));
}

}  // namespace

std::string fate_text(const trace::TokenFate& fate) {
    using Kind = trace::TokenFate::Kind;
    switch (fate.kind) {
        case Kind::dropped:
            return "dropped";
        case Kind::whole:
            return "kept";
        case Kind::rebuilt:
            return "kept in part and rebuilt" + error_text(fate);
        case Kind::merged:
            return merged_text(fate) + error_text(fate);
    }
    return "";
}

std::string describe_fate_in_layer(const trace::Kept& kept, size_t layer, uint32_t token) {
    using Kind = trace::TokenFate::Kind;
    std::vector<size_t> heads;
    std::string rebuilt;
    struct Merged {
        std::string text;
        size_t n_heads = 0;
    };
    std::vector<Merged> merged;
    double entries = 0;
    for (size_t row = 0; row < kept.n_rows; ++row) {
        const trace::TokenFate fate = kept.fate(layer, row, token);
        if (!fate.is_held()) continue;
        heads.push_back(row);
        entries += 1.0 / fate.n_tokens;
        if (fate.kind == Kind::rebuilt) rebuilt += fmt::format("\nhead {}: {}", row, fate_text(fate));
        if (fate.kind != Kind::merged) continue;
        const std::string text = merged_text(fate);
        const auto same = std::find_if(merged.begin(), merged.end(), [&](const Merged& m) { return m.text == text; });
        ++(same == merged.end() ? merged.emplace_back(Merged{text}) : *same).n_heads;
    }
    if (heads.empty()) return "kept by no head";
    std::string all =
        fmt::format("kept by {} of {} heads ({}){}", heads.size(), kept.n_rows, fmt::join(heads, ", "), rebuilt);
    for (const Merged& entry : merged)
        all += fmt::format("\n{} in {} {}", entry.text, entry.n_heads, entry.n_heads == 1 ? "head" : "heads");
    if (!merged.empty()) all += fmt::format(": {} entries in all", format_number(entries));
    return all;
}

size_t TokenReport::n_kept() const {
    return static_cast<size_t>(
        std::count_if(decisions.begin(), decisions.end(), [](const TokenDecision& d) { return d.kept; }));
}

std::string TokenReport::sentence(size_t layer, size_t row) const {
    const TokenDecision& d = at(layer, row);
    const std::string where = fmt::format("layer {}, {} head {}", layer, query_heads ? "query" : "KV", row);
    std::string what = fmt::format("{} in {}", fate_text(d.fate), where);
    if (d.fate.kind == trace::TokenFate::Kind::merged || d.fate.kind == trace::TokenFate::Kind::rebuilt) return what;
    if (!has_scores) return what + "; there are no scores: the policy uses only positions, or the trace has no scores";
    if (!d.candidate) {
        return d.kept ? what + " without being ranked (window, sinks or recent entries)" : what + ": it was not ranked";
    }
    if (d.n_candidates_kept == 0) {
        return fmt::format("{}: score {} is rank {} of {}, none of which is kept", what, format_number(d.score),
                           count(d.rank), count(d.n_candidates));
    }
    const int digits = count_distinguishing_digits(d.score, d.cut_off);
    return fmt::format("{}: score {} is rank {} of {}; {} of them are kept, the cut-off is {}", what,
                       format_number(d.score, digits), count(d.rank), count(d.n_candidates), count(d.n_candidates_kept),
                       format_number(d.cut_off, digits));
}

TokenReport token_report(const trace::Reader& reader, int prompt, int run, int64_t token) {
    const trace::RunAttributes& attributes = finished_run(reader, prompt, run);
    check_token(reader, prompt, token);
    const auto kept = reader.kept(prompt, run);
    const auto n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    const Place place = Place::of_run(prompt, run);

    TokenReport report;
    report.token = token;
    report.n_layers = kept->n_layers;
    report.n_rows = kept->n_rows;
    report.query_heads = attributes.granularity == schema::run::granularity_query_head;
    report.has_scores = reader.has(place, schema::run::scores);
    const int64_t n_ranked = ranked_before(attributes, static_cast<int64_t>(n_tokens));
    for (size_t layer = 0; layer < report.n_layers; ++layer) {
        const LayerRows rows{reader.scores(prompt, run, layer), kept.get(), layer, n_tokens, n_ranked};
        for (size_t r = 0; r < report.n_rows; ++r) {
            TokenDecision d = decision(rows.row(r), static_cast<uint32_t>(token));
            d.fate = kept->fate(layer, r, static_cast<uint32_t>(token));
            report.decisions.push_back(d);
        }
    }
    return report;
}

Border find_tokens_near_cut_off(const trace::Reader& reader, int prompt, int run, size_t layer, size_t row, size_t k) {
    const trace::RunAttributes& attributes = finished_run(reader, prompt, run);
    const auto kept = reader.kept(prompt, run);
    if (layer >= kept->n_layers || row >= kept->n_rows) {
        throw std::out_of_range(fmt::format("there is no row {} of layer {}: the run has {} layers of {} rows", row,
                                            layer, kept->n_layers, kept->n_rows));
    }
    const auto n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    const LayerRows rows{reader.scores(prompt, run, layer), kept.get(), layer, n_tokens,
                         ranked_before(attributes, static_cast<int64_t>(n_tokens))};
    const RankedRow ranked = rows.row(row);
    std::vector<uint32_t> order;
    for (uint32_t token = 0; token < ranked.scores.size(); ++token) {
        if (ranked.is_candidate(token)) order.push_back(token);
    }
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return ranked.better(a, b); });
    Border border;
    for (size_t i = 0; i < order.size() && border.dropped.size() < k; ++i) {
        if (!ranked.keeps(order[i])) border.dropped.push_back({order[i], ranked.scores[order[i]], i + 1});
    }
    for (size_t i = order.size(); i > 0 && border.kept.size() < k; --i) {
        if (ranked.keeps(order[i - 1])) border.kept.push_back({order[i - 1], ranked.scores[order[i - 1]], i});
    }
    std::reverse(border.kept.begin(), border.kept.end());
    return border;
}

std::vector<SpanReport> span_report(const trace::Reader& reader, int prompt, int64_t first, int64_t last) {
    check_prompt(reader, prompt);
    check_token(reader, prompt, first);
    check_token(reader, prompt, last);
    if (first > last) {
        throw std::out_of_range(
            fmt::format("the first token of the span, {}, is after its last token, {}", first, last));
    }
    std::vector<SpanReport> reports;
    for (int run = 0; run < reader.n_runs(prompt); ++run) {
        if (reader.run(prompt, run).status != schema::run::status_complete) continue;
        const auto kept = reader.kept(prompt, run);
        SpanReport report;
        report.run = run;
        report.n_tokens = static_cast<size_t>(last - first + 1);
        report.n_places = kept->n_layers * kept->n_rows;
        std::vector<char> seen(report.n_tokens, 0);
        for (size_t layer = 0; layer < kept->n_layers; ++layer) {
            for (size_t row = 0; row < kept->n_rows; ++row) {
                const auto all = kept->held(layer, row);
                const auto begin = std::lower_bound(all.begin(), all.end(), static_cast<uint32_t>(first));
                const auto end = std::upper_bound(begin, all.end(), static_cast<uint32_t>(last));
                for (auto token = begin; token != end; ++token) seen[*token - static_cast<size_t>(first)] = 1;
                const auto n = static_cast<size_t>(end - begin);
                report.n_keeping_any += n > 0;
                const auto any_is = [&](trace::TokenFate::Kind kind) {
                    return std::any_of(begin, end,
                                       [&](uint32_t token) { return kept->fate(layer, row, token).kind == kind; });
                };
                report.n_entries += std::accumulate(begin, end, 0.0, [&](double sum, uint32_t token) {
                    return sum + (kept->merges() ? 1.0 / kept->fate(layer, row, token).n_tokens : 1.0);
                });
                if (kept->merges()) report.n_merging += any_is(trace::TokenFate::Kind::merged);
                if (!kept->stored_entries.empty()) report.n_rebuilding += any_is(trace::TokenFate::Kind::rebuilt);
                if (n > report.most.n_tokens) report.most = {layer, row, n};
                if (n < report.n_tokens) continue;
                ++report.n_keeping_all;
                auto& layers = report.layers_keeping_all;
                if (layers.empty() || layers.back() != layer) layers.push_back(layer);
            }
        }
        report.n_tokens_kept = static_cast<size_t>(std::count(seen.begin(), seen.end(), 1));
        report.sentence = sentence_of(report, reader.run(prompt, run), kept->n_layers);
        reports.push_back(std::move(report));
    }
    return reports;
}

}  // namespace kvscope::analysis
