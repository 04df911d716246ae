// A trace for tests of rankings, and access to cells of a ranking.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numeric>

#include "analysis/ranking.h"
#include "tests/trace/sample_trace.h"
#include "trace/reader.h"

namespace kvscope::analysis::testing {

namespace sample = trace::sample;

/// A trace of the sample model. A test may change its prompt and runs before it is written.
struct RankedTrace {
    sample::Options options;
    trace::PromptRecord prompt;
    std::vector<trace::RunRecord> runs;
    sample::TemporaryFolder folder;

    RankedTrace() {
        prompt = sample::prompt(options);
        for (size_t i = 0; i < prompt.token_text.size(); ++i)
            if (i % 6 == 5) prompt.token_text[i] += ".";
        runs = sample::runs(options, prompt);
    }
    [[nodiscard]] trace::Reader reader() const {
        trace::Writer writer(folder / "t.h5", sample::recipe, {.force = true, .generator = "rankings_test"});
        writer.write_model(sample::model(options));
        writer.write_prompt(0, prompt);
        for (size_t j = 0; j < runs.size(); ++j) writer.write_run(0, static_cast<int>(j), runs[j]);
        writer.finish();
        return trace::Reader(folder / "t.h5");
    }

    [[nodiscard]] size_t n_tokens() const { return static_cast<size_t>(options.n_tokens); }

    /// Returns the part of an entry that a row of a run holds of a token: 1, or 1/n in an entry of n.
    double part(size_t run, size_t layer, size_t row, size_t token) const {
        const trace::RunRecord& r = runs[run];
        const size_t rows = static_cast<size_t>(options.n_kv_heads);
        const size_t place = layer * rows + row;
        if (r.merged_token_entry.empty()) {
            const auto begin = r.kept_indices.begin() + static_cast<std::ptrdiff_t>(r.kept_offsets[place]);
            const auto end = r.kept_indices.begin() + static_cast<std::ptrdiff_t>(r.kept_offsets[place + 1]);
            return std::find(begin, end, token) != end ? 1 : 0;
        }
        const int32_t* entries = &r.merged_token_entry[place * n_tokens()];
        if (entries[token] < 0) return 0;
        return 1.0 / static_cast<double>(std::count(entries, entries + n_tokens(), entries[token]));
    }
    [[nodiscard]] double kept_share(size_t run, size_t token) const {
        double sum = 0;
        for (size_t layer = 0; layer < 3; ++layer)
            for (size_t row = 0; row < 2; ++row) sum += part(run, layer, row, token);
        return sum / 6;
    }
    /// Returns the full run's attention in one layer, averaged over the query heads.
    [[nodiscard]] double lost(size_t run, size_t layer, size_t token) const {
        double sum = 0;
        for (size_t head = 0; head < 4; ++head)
            if (part(run, layer, head / 2, token) == 0)
                sum += static_cast<double>(prompt.window_attention[(layer * 4 + head) * n_tokens() + token]) / 4;
        return sum;
    }
    /// Returns the loss of `count` tokens from `first`, averaged over layers; 0 for the full run.
    [[nodiscard]] double kl_lost(size_t run, size_t first, size_t count) const {
        double sum = 0;
        for (size_t layer = 0; run > 0 && layer < 3; ++layer)
            for (size_t token = first; token < first + count; ++token)
                sum += static_cast<double>(runs[run].kl_attention_lost[layer * n_tokens() + token]) / 3;
        return sum;
    }
    [[nodiscard]] double jsd(size_t layer, size_t a, size_t b) const {
        const size_t n = n_tokens(), prefix = n - static_cast<size_t>(options.window);
        const auto distribution = [&](size_t head) {
            std::vector<double> p(prefix);
            for (size_t i = 0; i < prefix; ++i)
                for (size_t q = 2 * head; q < 2 * head + 2; ++q)
                    p[i] += static_cast<double>(prompt.window_attention[(layer * 4 + q) * n + i]);
            const double sum = std::accumulate(p.begin(), p.end(), 0.0);
            for (double& value : p) value /= sum;
            return p;
        };
        const auto p = distribution(a), q = distribution(b);
        double sum = 0;
        for (size_t i = 0; i < prefix; ++i) {
            const double m = (p[i] + q[i]) / 2;
            sum += (p[i] > 0 ? p[i] * std::log(p[i] / m) : 0) / 2 + (q[i] > 0 ? q[i] * std::log(q[i] / m) : 0) / 2;
        }
        return sum;
    }
};

inline Ranking ranked(const trace::Reader& reader, const std::string& name, std::vector<RunChoice> runs = {}) {
    FigureOptions options;
    options.runs = std::move(runs);
    return make_ranking(ranking_definition(name), reader, options);
}

[[nodiscard]] inline size_t column_of(const Ranking& ranking, const std::string& name) {
    const auto& columns = ranking.table.columns;
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.name == name; });
    REQUIRE(found != columns.end());
    return static_cast<size_t>(found - columns.begin());
}

inline double number(const Ranking& ranking, size_t row, const std::string& column) {
    const Cell& cell = ranking.table.rows.at(row).cells.at(column_of(ranking, column));
    if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
    return std::get<double>(cell);
}

inline std::string text(const Ranking& ranking, size_t row, const std::string& column) {
    return std::get<kvscope::SharedText>(ranking.table.rows.at(row).cells.at(column_of(ranking, column))).string();
}

[[nodiscard]] inline bool is_empty(const Ranking& ranking, size_t row, const std::string& column) {
    return std::holds_alternative<std::monostate>(ranking.table.rows.at(row).cells.at(column_of(ranking, column)));
}

[[nodiscard]] inline std::string why_not(const std::function<void()>& rank) {
    try {
        rank();
    } catch (const std::exception& error) {
        return error.what();
    }
    return {};
}

}  // namespace kvscope::analysis::testing
