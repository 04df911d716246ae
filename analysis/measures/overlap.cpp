#include "analysis/measures/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace kvscope::analysis {
namespace {

/// Numbers of entries. Each of n tokens in an entry counts as 1/n.
struct Counts {
    double both = 0;
    double either = 0;
    double ratio() const { return either > 0 ? both / either : 1.0; }
};

struct Row {
    std::span<const uint32_t> tokens;
    std::span<const uint32_t> entry_tokens = {};

    double part(size_t i) const { return entry_tokens.empty() ? 1.0 : 1.0 / entry_tokens[i]; }
};

Row row_of(const KeptSets& kept, size_t layer, size_t row) {
    const size_t place = layer * kept.n_rows + row;
    Row found{kept.row(layer, row), {}};
    if (!kept.entry_tokens.empty())
        found.entry_tokens = kept.entry_tokens.subspan(kept.offsets[place], found.tokens.size());
    return found;
}

/// Sums the smaller share of each token in the two rows as the intersection, and the larger share as the union.
Counts compare(const Row& a, const Row& b) {
    Counts counts;
    for (size_t i = 0, j = 0; i < a.tokens.size() || j < b.tokens.size();) {
        const bool has_a = i < a.tokens.size() && (j == b.tokens.size() || a.tokens[i] <= b.tokens[j]);
        const bool has_b = j < b.tokens.size() && (i == a.tokens.size() || b.tokens[j] <= a.tokens[i]);
        const double in_a = has_a ? a.part(i++) : 0, in_b = has_b ? b.part(j++) : 0;
        counts.both += std::min(in_a, in_b);
        counts.either += std::max(in_a, in_b);
    }
    return counts;
}

void check_same_prompt(const KeptSets& a, const KeptSets& b) {
    if (a.n_layers != b.n_layers || a.n_tokens != b.n_tokens) {
        throw std::invalid_argument(fmt::format(
            "overlap: both runs must have the same prompt and model, but A has {} layers of {} tokens and B {} of {}",
            a.n_layers, a.n_tokens, b.n_layers, b.n_tokens));
    }
}

std::vector<Counts> layer_entry_counts(const KeptSets& a, const KeptSets& b) {
    check_same_prompt(a, b);
    const size_t n_rows = std::max(a.n_rows, b.n_rows);
    if (a.n_rows == 0 || b.n_rows == 0 || n_rows % a.n_rows != 0 || n_rows % b.n_rows != 0) {
        throw std::invalid_argument(
            fmt::format("overlap: of {} and {} heads, one number must be a multiple of the other", a.n_rows, b.n_rows));
    }
    std::vector<Counts> counts(a.n_layers);
    for (size_t layer = 0; layer < a.n_layers; ++layer) {
        for (size_t row = 0; row < n_rows; ++row) {
            const Counts c =
                compare(row_of(a, layer, row / (n_rows / a.n_rows)), row_of(b, layer, row / (n_rows / b.n_rows)));
            counts[layer].both += c.both;
            counts[layer].either += c.either;
        }
    }
    return counts;
}

std::vector<char> tokens_of(const KeptSets& kept, size_t layer) {
    std::vector<char> seen(kept.n_tokens, 0);
    for (size_t row = 0; row < kept.n_rows; ++row) {
        for (const uint32_t token : kept.row(layer, row)) seen[token] = 1;
    }
    return seen;
}

}  // namespace

double jaccard(std::span<const uint32_t> a, std::span<const uint32_t> b) { return compare({a}, {b}).ratio(); }

std::vector<double> head_overlap(const KeptSets& kept) {
    const size_t n = kept.n_rows;
    std::vector<double> overlap(kept.n_layers * n * n, 1.0);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        double* matrix = overlap.data() + layer * n * n;
        for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < i; ++j) {
                matrix[i * n + j] = matrix[j * n + i] = jaccard(kept.row(layer, i), kept.row(layer, j));
            }
        }
    }
    return overlap;
}

std::vector<double> run_overlap(const KeptSets& a, const KeptSets& b) {
    std::vector<double> overlap;
    for (const Counts& layer : layer_entry_counts(a, b)) overlap.push_back(layer.ratio());
    return overlap;
}

double run_overlap_total(const KeptSets& a, const KeptSets& b) {
    Counts total;
    for (const Counts& layer : layer_entry_counts(a, b)) {
        total.both += layer.both;
        total.either += layer.either;
    }
    return total.ratio();
}

std::vector<double> run_token_overlap(const KeptSets& a, const KeptSets& b) {
    check_same_prompt(a, b);
    std::vector<double> overlap;
    for (size_t layer = 0; layer < a.n_layers; ++layer) {
        const std::vector<char> in_a = tokens_of(a, layer);
        const std::vector<char> in_b = tokens_of(b, layer);
        Counts counts;
        for (size_t token = 0; token < a.n_tokens; ++token) {
            counts.both += in_a[token] & in_b[token];
            counts.either += in_a[token] | in_b[token];
        }
        overlap.push_back(counts.ratio());
    }
    return overlap;
}

}  // namespace kvscope::analysis
