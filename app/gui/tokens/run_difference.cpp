#include "app/gui/tokens/run_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/measures/overlap.h"

namespace kvscope::gui {
namespace {

RunPair read_pair(const RunAt& a, const RunAt& b) {
    RunPair pair;
    pair.a = a.kept();
    pair.b = b.kept();
    const auto n_a = static_cast<size_t>(a.reader->prompt(a.prompt).visible_tokens());
    const auto n_b = static_cast<size_t>(b.reader->prompt(b.prompt).visible_tokens());
    if (pair.a->n_layers != pair.b->n_layers) {
        throw std::runtime_error(
            fmt::format("A has {} layers and B has {}, so their models differ. Choose two runs of one model.",
                        pair.a->n_layers, pair.b->n_layers));
    }
    if (n_a != n_b || a.reader->token_ids(a.prompt) != b.reader->token_ids(b.prompt)) {
        throw std::runtime_error(
            fmt::format("A's prompt has {} tokens and B's prompt has {}. Choose two runs of one prompt.", n_a, n_b));
    }
    const size_t more = std::max(pair.a->n_rows, pair.b->n_rows);
    const size_t fewer = std::min(pair.a->n_rows, pair.b->n_rows);
    if (fewer == 0 || more % fewer != 0) {
        throw std::runtime_error(
            fmt::format("A has {} heads per layer and B has {}. One number must be a multiple of the other.",
                        pair.a->n_rows, pair.b->n_rows));
    }
    pair.n_layers = pair.a->n_layers;
    pair.n_tokens = n_a;
    pair.n_rows = more;
    return pair;
}

/// Adds the entries of each token in a layer to `values`: (R, N), or (N) summed over the heads.
void add_kept(const RunPair& pair, const trace::Kept& kept, size_t layer, bool sum_heads, float* values) {
    const analysis::KeptSets sets = analysis::kept_sets(kept, pair.n_tokens);
    for (size_t row = 0; row < pair.n_rows; ++row) {
        float* const to = values + (sum_heads ? 0 : row * pair.n_tokens);
        sets.each(layer, row * kept.n_rows / pair.n_rows,
                  [&](uint32_t token, double share) { to[token] += static_cast<float>(share); });
    }
}

float class_of(float in_a, float in_b) {
    if (in_a > 0) return in_b > 0 ? 1.0f : 2.0f;
    return in_b > 0 ? 3.0f : 0.0f;
}

Pyramid make_map(const RunPair& pair, int layer, bool classes) {
    const bool all_layers = layer < 0;
    const size_t rows = all_layers ? pair.n_layers : pair.n_rows;
    const size_t n = pair.n_tokens;
    std::vector<float> a(rows * n, 0.0f);
    std::vector<float> b(rows * n, 0.0f);
    if (all_layers) {
        for (size_t l = 0; l < pair.n_layers; ++l) {
            add_kept(pair, *pair.a, l, true, a.data() + l * n);
            add_kept(pair, *pair.b, l, true, b.data() + l * n);
        }
    } else {
        add_kept(pair, *pair.a, static_cast<size_t>(layer), false, a.data());
        add_kept(pair, *pair.b, static_cast<size_t>(layer), false, b.data());
    }
    const float most = all_layers ? static_cast<float>(pair.n_rows) : 1.0f;
    for (size_t i = 0; i < a.size(); ++i)
        a[i] = classes ? class_of(a[i], b[i]) : scale_difference_to_color(a[i] - b[i], most);
    return make_pyramid(std::move(a), rows, n, classes ? Reduce::maximum : Reduce::largest_magnitude);
}

}  // namespace

double RunPair::entries(const trace::Kept& kept, size_t layer, size_t row, uint32_t token) const {
    const trace::TokenFate fate = kept.fate(layer, row * kept.n_rows / n_rows, token);
    return fate.is_held() ? 1.0 / fate.n_tokens : 0.0;
}

double RunPair::entries(const trace::Kept& kept, size_t layer, uint32_t token) const {
    double sum = 0;
    for (size_t row = 0; row < n_rows; ++row) sum += entries(kept, layer, row, token);
    return sum;
}

float scale_difference_to_color(float difference, float most) {
    const float size = std::abs(difference);
    if (size < 1e-5f) return std::numeric_limits<float>::quiet_NaN();  // sums of fractions have rounding errors
    return std::copysign(0.25f * most * std::min(size, 1.0f) + 0.75f * size, difference);
}

RunDifference compare_kept_tokens(const RunAt& a, const RunAt& b, int layer, bool classes) {
    RunDifference out;
    out.pair = read_pair(a, b);
    const auto sets_a = analysis::kept_sets(*out.pair.a, out.pair.n_tokens);
    const auto sets_b = analysis::kept_sets(*out.pair.b, out.pair.n_tokens);
    out.overlap = analysis::run_overlap(sets_a, sets_b);
    out.overlap_total = analysis::run_overlap_total(sets_a, sets_b);
    out.map = make_map(out.pair, std::min(layer, static_cast<int>(out.pair.n_layers) - 1), classes);
    return out;
}

}  // namespace kvscope::gui
